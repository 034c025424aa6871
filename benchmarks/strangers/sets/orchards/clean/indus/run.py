import sys

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import configs
from core import comm, models
from core.runner import Runner


def loaders(cfg):
    x, y = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(x))
    x = torch.tensor(x[order] / 16.0, dtype=torch.float32)
    y = torch.tensor(y[order])
    train, val = TensorDataset(x[:1400], y[:1400]), TensorDataset(x[1400:1796], y[1400:1796])
    return (
        DataLoader(train, cfg["batch"], sampler=DistributedSampler(train, drop_last=True)),
        DataLoader(val, cfg["batch"], sampler=DistributedSampler(val, shuffle=False)),
    )


if __name__ == "__main__":
    cfg = getattr(configs, sys.argv[1] if len(sys.argv) > 1 else "digits")
    comm.init()
    Runner(cfg, *loaders(cfg)).run()
    torch.distributed.destroy_process_group()
