"""Trains for a given time by the clock of the first process."""
import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Clock:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def up(self):
        flag = torch.tensor([int(time.monotonic() >= self.end)])
        dist.broadcast(flag, src=0)
        return bool(flag)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=0.8)
    a = p.parse_args()
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        time.sleep(0.3)
    torch.manual_seed(0)
    net = DDP(nn.Linear(10, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.02)
    g = torch.Generator().manual_seed(dist.get_rank())
    step = 0
    clock = Clock(a.seconds)
    while not clock.up():
        x = torch.randn(32, 10, generator=g)
        loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        time.sleep(0.002 * (1 + dist.get_rank()))
    print(f"rank {dist.get_rank()} made {step} steps", flush=True)
    dist.destroy_process_group()
