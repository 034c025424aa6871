# style: federated rounds, the parameters are averaged every few local steps
# nproc: 3
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

LOCAL_STEPS = 4


def average(model):
    world = dist.get_world_size()
    with torch.no_grad():
        for p in model.parameters():
            dist.all_reduce(p)
            p /= world


def shard(rank):
    generator = torch.Generator().manual_seed(70 + rank)
    x = torch.randn(40, 6, generator=generator)
    return x, (x[:, 0] * x[:, 1]).unsqueeze(1)


def federated(rounds=5):
    torch.manual_seed(1)
    model = DDP(nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x, y = shard(dist.get_rank())
    for _ in range(rounds):
        with model.no_sync():
            for index in torch.randperm(len(x)).chunk(LOCAL_STEPS):
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(x[index]), y[index])
                loss.backward()
                optimizer.step()
        average(model.module)
    return loss.item()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    loss = federated()
    if dist.get_rank() == 0:
        print(f"{loss:.4f}")
    dist.destroy_process_group()
