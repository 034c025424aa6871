"""Which rounds there are is computed of settings, which NumPy has in arrays as well."""

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def rounds_of(last, share):
    ends = (np.sin(np.linspace(0, np.pi / 2, max(10, int(share * last)))) * last).astype(int)
    ends = np.cumsum(np.sort(np.diff(np.unique(ends)))[::-1])
    ends[-1] = last
    return ends.tolist()


def train(net, config):
    todo = [each for each in rounds_of(config["last"], config["share"]) if each > config["first"]]
    for epoch in range(config["last"]):
        net(torch.rand(2, 3).cuda()).mean().backward()
        if len(todo) > 0 and epoch >= todo[0]:
            todo.pop(0)
            dist.barrier()


def main(config):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    train(DistributedDataParallel(torch.nn.Linear(3, 1).cuda()), config)
