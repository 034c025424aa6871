import json

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, world, steps):
    if world > 1:
        dist.init_process_group(
            "gloo",
            init_method="tcp://127.0.0.1:29511",  # <- DDP104
            rank=rank,
            world_size=world,
        )
    torch.manual_seed(rank)
    net = torch.nn.Linear(2, 2)
    if world > 1:
        net = DDP(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        opt.zero_grad()
        net(torch.randn(2, 2)).square().mean().backward()
        opt.step()
    torch.save((net.module if world > 1 else net).state_dict(), "net.pt")  # <-- DDP502
    if world > 1:
        dist.destroy_process_group()


def main():
    steps = 100
    torch.save({"steps": steps}, "settings.pt")
    with open("settings.json", "w") as file:
        json.dump({"steps": steps}, file)
    world = torch.cuda.device_count()
    if world > 1:
        mp.spawn(train, nprocs=world, args=(world, steps))
    else:
        train(0, 1, steps)


if __name__ == "__main__":
    main()
