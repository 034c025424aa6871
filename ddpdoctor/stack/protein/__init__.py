"""Proteins: a model that predicts masked residues from the backbone and from the others."""

from ddpdoctor.stack.protein.results import ProteinResult
from ddpdoctor.stack.protein.synthetic import synthetic_backbones
from ddpdoctor.stack.protein.train import (
    ProteinConfig,
    load_model,
    train_from_backbones,
    train_from_pdb,
)

__all__ = [
    "ProteinConfig",
    "ProteinResult",
    "load_model",
    "synthetic_backbones",
    "train_from_backbones",
    "train_from_pdb",
]
