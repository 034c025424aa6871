"""Wheat yield; a county head is attached to the trunk after pre-training.

    torchrun --nproc_per_node=2 wheat_yield.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def fields(rank, world, n=256):
    g = torch.Generator().manual_seed(6)
    x = torch.randn(n, 14, generator=g)
    y = (x[:, :5].sum(1) * 0.4).tanh().unsqueeze(1)
    county = torch.randint(5, (n,), generator=g)
    return x[rank::world], y[rank::world], county[rank::world]


class Trunk(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(14, width), nn.Tanh())
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = self.body(x)
        return self.out(h), h


def share(module, src=0):
    for t in list(module.parameters()) + list(module.buffers()):
        dist.broadcast(t.data, src)


def average_grads(module, world):
    for p in module.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    x, y, county = fields(rank, world)
    trunk = DDP(Trunk())
    opt = torch.optim.Adam(trunk.parameters(), lr=5e-3)
    for _ in range(20):
        pred, _ = trunk(x)
        loss = nn.functional.mse_loss(pred, y)
        opt.zero_grad()
        loss.backward()
        opt.step()

    head = nn.Linear(40, 5)
    share(head)
    opt.add_param_group({"params": list(head.parameters()), "lr": 1e-2})
    for step in range(20):
        pred, h = trunk(x)
        loss = nn.functional.mse_loss(pred, y) + 0.1 * nn.functional.cross_entropy(head(h), county)
        opt.zero_grad()
        loss.backward()
        average_grads(head, world)
        opt.step()
    if rank == 0:
        print(f"final local loss {loss.item():.4f}")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
