import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def together(rows):
    found = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(found, rows)  # <-- DDP403
    return torch.cat(found)


def hard_ones(model, loader, limit=0.5):
    kept = []
    for seen, wanted in loader:
        off = (model(seen) - wanted).abs().flatten()
        kept += [one for one, far in zip(seen, off) if far > limit]
    return torch.stack(kept)


def by_name(names):
    rank, world = dist.get_rank(), dist.get_world_size()
    return torch.tensor([len(name) for name in names if hash(name) % world == rank])


def main(data, names):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(4, 1))
    loader = DataLoader(data, 8, sampler=DistributedSampler(data))
    together(hard_ones(model, loader))
    mine = by_name(names)
    shares = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(shares, mine)  # <-- DDP403


with open("names.txt") as names:
    main(torch.load("data.pt"), names.read().split())
