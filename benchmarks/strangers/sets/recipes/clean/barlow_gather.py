"""Barlow Twins on synthetic views with the cross-correlation of the global batch."""
import torch
import torch.distributed as dist
import torch.distributed.nn as dist_nn
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def off_diagonal(m):
    n = m.size(0)
    return m.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()


class BarlowTwins(nn.Module):
    def __init__(self, dim=10, proj=16, lambd=0.01):
        super().__init__()
        self.lambd = lambd
        self.net = nn.Sequential(nn.Linear(dim, 32), nn.Tanh(), nn.Linear(32, proj, bias=False))

    def forward(self, y1, y2):
        z1, z2 = self.net(y1), self.net(y2)
        world = dist.get_world_size()
        c = z1.T @ z2 / (len(z1) * world)
        c = dist_nn.all_reduce(c)
        on_diag = (torch.diagonal(c) - 1).pow(2).sum()
        return on_diag + self.lambd * off_diagonal(c).pow(2).sum()


def views(it, rank, n=32):
    g = torch.Generator().manual_seed(it * 7 + rank)
    x = torch.randn(n, 10, generator=g)
    return x + 0.1 * torch.randn(n, 10, generator=g), x + 0.1 * torch.randn(n, 10, generator=g)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(BarlowTwins())
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for it in range(30):
        loss = model(*views(it, rank))
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1e9)
        opt.step()
        if rank == 0 and it % 10 == 0:
            print(f"it {it} loss {loss.item():.3f} grad norm {norm.item():.4f}", flush=True)
    dist.barrier()
    if rank == 0:
        print(f"final loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
