"""Crystals: a periodic graph transformer that learns properties of a structure."""

from ddpdoctor.stack.crystal.dataset import dcdft
from ddpdoctor.stack.crystal.predict import load_model, predict_from_extxyz, predict_from_list
from ddpdoctor.stack.crystal.results import TrainingResult
from ddpdoctor.stack.crystal.train import CrystalConfig, train_from_extxyz, train_from_list

__all__ = [
    "CrystalConfig",
    "TrainingResult",
    "dcdft",
    "load_model",
    "predict_from_extxyz",
    "predict_from_list",
    "train_from_extxyz",
    "train_from_list",
]
