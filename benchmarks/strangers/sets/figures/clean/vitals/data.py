import numpy as np
import torch
from torch.utils.data import TensorDataset, random_split


def load_records(cfg):
    rng = np.random.default_rng(7)
    w = rng.normal(size=(cfg.n_feats, cfg.n_classes))
    x = rng.normal(size=(cfg.n_samples, cfg.n_feats))
    y = (x @ w + 6.0 * rng.normal(size=(cfg.n_samples, cfg.n_classes))).argmax(1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def make_datasets(cfg):
    full = TensorDataset(*load_records(cfg))
    n_val = int(len(full) * cfg.val_fraction)
    train_set, val_set = random_split(
        full, [len(full) - n_val, n_val], generator=torch.Generator().manual_seed(cfg.seed))
    return train_set, val_set
