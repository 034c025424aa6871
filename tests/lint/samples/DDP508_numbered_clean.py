import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def name(folder, round_):
    return os.path.join(folder, f"round{round_}.pth")


def learn(folder, rounds):
    wrapped = DistributedDataParallel(torch.nn.Linear(4, 4))
    for each in range(rounds):
        wrapped(torch.ones(2, 4)).sum().backward()
        if dist.get_rank() == 0:
            torch.save(wrapped.module.state_dict(), name(folder, each))
    dist.barrier()


def export(folder):
    plain = torch.nn.Linear(4, 4)
    plain.load_state_dict(torch.load(name(folder, 4), map_location="cpu"))
    return torch.jit.script(plain)


dist.init_process_group("gloo")
learn("weights", 5)
export("weights")
