"""Which of two libraries is installed, and what a file says, is the same for all ranks."""

import argparse

import torch
import torch.distributed as dist
import yaml
from torch.nn.parallel import DistributedDataParallel as DDP

try:
    import torch_npu
    from torch_npu.contrib import transfer_to_npu
except:
    torch_npu = None
    transfer_to_npu = None


def settings(path):
    with open(path) as file:
        try:
            found = yaml.load(file, Loader=yaml.FullLoader)
        except:
            found = yaml.load(file)
    return found


def main(path):
    dist.init_process_group("hccl" if torch_npu is not None else "nccl")
    every = settings(path).get("every", 1)
    net = DDP(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if torch_npu is not None:
        dist.barrier()
    for step, batch in enumerate(torch.rand(64, 8, 4)):
        optimizer.zero_grad()
        net(batch).square().mean().backward()
        optimizer.step()
        if step % every == 0:
            dist.barrier()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings")
    main(parser.parse_args().settings)
