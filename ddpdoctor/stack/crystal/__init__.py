"""Crystals: a periodic graph transformer that learns a property of a structure."""

from ddpdoctor.stack.crystal.dataset import dcdft
from ddpdoctor.stack.crystal.results import TrainingResult
from ddpdoctor.stack.crystal.train import (
    CrystalConfig,
    load_model,
    train_from_extxyz,
    train_from_list,
)

__all__ = [
    "CrystalConfig",
    "TrainingResult",
    "dcdft",
    "load_model",
    "train_from_extxyz",
    "train_from_list",
]
