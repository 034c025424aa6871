"""Where the argument says nothing, the environment does."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def say(*words):
    if "LOCAL_RANK" not in os.environ or int(os.environ["LOCAL_RANK"]) == 0:
        print(*words)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    options = parser.parse_args()
    if (told := int(os.environ["LOCAL_RANK"])) >= 0:
        options.local_rank = told
    say(options)
    torch.manual_seed(7 + options.local_rank)
    dist.init_process_group("nccl")
    torch.cuda.set_device(options.local_rank)
    model = torch.nn.Linear(4, 1).to(f"cuda:{options.local_rank}")
    model = DistributedDataParallel(model, device_ids=[options.local_rank])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(8, 4).cuda()).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
