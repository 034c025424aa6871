import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def pictures(n, seed):
    g = torch.Generator().manual_seed(seed)
    protos = torch.randn(10, 3, 1, 1, generator=torch.Generator().manual_seed(99))
    y = torch.randint(0, 10, (n,), generator=g)
    return TensorDataset(protos[y] + 0.9 * torch.randn(n, 3, 8, 8, generator=g), y)


def get_dataloaders(cfg):
    train, val = pictures(640, 0), pictures(256, 1)
    sampler = DistributedSampler(train, seed=cfg.EXPERIMENT.SEED)
    return (DataLoader(train, cfg.SOLVER.BATCH_SIZE, sampler=sampler, drop_last=True),
            DataLoader(val, 64, sampler=DistributedSampler(val, shuffle=False)))
