import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def _synthetic(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g)
    return TensorDataset(x, (x.sum(1) > 0).long())


def make_data_loader(args):
    train, val = _synthetic(args.n_train, 0), _synthetic(args.n_val, 1)
    half = len(train) // 2
    a = torch.utils.data.Subset(train, range(half))
    b = torch.utils.data.Subset(train, range(half, len(train)))
    sampler_a = DistributedSampler(a) if args.dist else None
    sampler_b = DistributedSampler(b) if args.dist else None
    loader_a = DataLoader(a, batch_size=args.batch_size, sampler=sampler_a, shuffle=sampler_a is None)
    loader_b = DataLoader(b, batch_size=args.batch_size, sampler=sampler_b, shuffle=sampler_b is None)
    val_loader = DataLoader(val, batch_size=args.batch_size)
    return loader_a, loader_b, val_loader
