import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def create_dataset(split):
    g = torch.Generator().manual_seed({"train": 0, "val": 1}[split])
    n = {"train": 768, "val": 256}[split]
    protos = torch.randn(8, 3, 12, 12, generator=torch.Generator().manual_seed(7))
    target = torch.randint(0, 8, (n,), generator=g)
    gain = 0.5 + 2 * torch.rand(n, 1, 1, 1, generator=g)
    image = gain * protos[target] + 1.2 * torch.randn(n, 3, 12, 12, generator=g)
    return TensorDataset(image, target)


def create_loader(dataset, args, is_training):
    sampler = DistributedSampler(dataset, args.world_size, args.rank, shuffle=is_training)
    return DataLoader(dataset, args.batch_size, sampler=sampler, drop_last=is_training), sampler
