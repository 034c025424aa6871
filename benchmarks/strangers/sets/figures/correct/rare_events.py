"""Rare event detector; one global weighted draw per epoch, dealt out to the processes."""
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Sampler, TensorDataset


class DealtWeightedSampler(Sampler):
    def __init__(self, weights, per_rank, rank, world, seed):
        self.weights = torch.as_tensor(weights, dtype=torch.double)
        self.per_rank, self.rank, self.world, self.seed = per_rank, rank, world, seed
        self.epoch = 0

    def __len__(self):
        return self.per_rank

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + 7919 * self.epoch)
        draw = torch.multinomial(self.weights, self.per_rank * self.world, replacement=True, generator=g)
        return iter(draw[self.rank * self.per_rank:(self.rank + 1) * self.per_rank].tolist())


def events(n=1500):
    g = torch.Generator().manual_seed(6)
    y = (torch.rand(n, generator=g) < 0.07).long()
    return TensorDataset(torch.randn(n, 14, generator=g) + 0.8 * y[:, None], y)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--per-rank", type=int, default=240)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(99)
    data = events()
    y = data.tensors[1]
    sampler = DealtWeightedSampler((1.0 / torch.bincount(y).double())[y], args.per_rank, rank, world, seed=31)
    loader = DataLoader(data, 20, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Linear(32, 2)))
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for sampler.epoch in range(args.epochs):
        stat = torch.zeros(3)
        for x, t in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, t)
            opt.zero_grad()
            loss.backward()
            opt.step()
            stat += torch.tensor([loss.item() * len(t), (out.argmax(1) == t).sum().item(), len(t)])
        dist.all_reduce(stat)
        if rank == 0:
            print(f"epoch {sampler.epoch} loss {stat[0] / stat[2]:.4f} acc {stat[1] / stat[2]:.3f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
