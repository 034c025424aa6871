"""Sharpness-aware training: the first of the two passes of a step stays local on purpose (m-sharpness)."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class SharpnessAware:
    def __init__(self, params, base, rho=0.05):
        self.params, self.base, self.rho = list(params), base, rho
        self.backup = {}

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm() + 1e-12
        for p in self.params:
            self.backup[p] = p.detach().clone()
            p.add_(p.grad, alpha=(self.rho / norm).item())
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p in self.params:
            p.copy_(self.backup[p])
        self.base.step()
        self.base.zero_grad()


def toy(rank, n=160):
    g = torch.Generator().manual_seed(50 + rank)
    x = torch.randn(n, 12, generator=g)
    return x, (x[:, :3].sum(1) > 0).long()


def main():
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2)))
    sam = SharpnessAware(model.parameters(), torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    x, y = toy(rank)
    for epoch in range(3):
        for xb, yb in zip(x.split(16), y.split(16)):
            with model.no_sync():
                nn.functional.cross_entropy(model(xb), yb).backward()
            sam.climb()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            sam.descend()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
