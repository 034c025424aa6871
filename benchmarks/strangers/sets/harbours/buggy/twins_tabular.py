"""Redundancy-reduction pretraining on tabular rows (two noisy views of each row)."""
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_fn
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class CrossCorrelationLoss(nn.Module):
    def __init__(self, lambd=0.01, gather_distributed=True):
        super().__init__()
        self.lambd, self.gather_distributed = lambd, gather_distributed

    @staticmethod
    def _standardise(z):
        return (z - z.mean(0)) / (z.std(0) + 1e-5)

    def forward(self, za, zb):
        za, zb = self._standardise(za), self._standardise(zb)
        c = za.T @ zb / len(za)
        if self.gather_distributed and dist.is_initialized():
            world = dist.get_world_size()
            if world > 1:
                c = c / world
                dist.all_reduce(c)
        on = (torch.diagonal(c) - 1).pow(2).sum()
        off = c.pow(2).sum() - torch.diagonal(c).pow(2).sum()
        return on + self.lambd * off


class Projector(nn.Module):
    def __init__(self, cols, width=48, out=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(cols, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, out)

    def forward(self, a, b):
        z = self.head(self.body(torch.cat([a, b])))
        return z.chunk(2)


def rows(rank, n=512, cols=20):
    g = torch.Generator().manual_seed(10 + rank)
    mix = torch.randn(5, cols, generator=torch.Generator().manual_seed(0))
    return torch.randn(n, 5, generator=g) @ mix


def corrupt(x, g, p=0.2):
    keep = torch.rand(x.shape, generator=g) > p
    return x * keep + 0.1 * torch.randn(x.shape, generator=g)


def pretrain(epochs=4, batch=64):
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Projector(20))
    criterion = CrossCorrelationLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    x, g = rows(rank), torch.Generator().manual_seed(70 + rank)
    for epoch in range(epochs):
        total = 0.0
        for chunk in x[torch.randperm(len(x), generator=g)].split(batch):
            loss = criterion(*model(corrupt(chunk, g), corrupt(chunk, g)))
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm().item()
        if rank == 0:
            print(f"epoch {epoch} loss {total / (len(x) // batch):.4f} grad {norm:.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    pretrain()
    dist.destroy_process_group()
