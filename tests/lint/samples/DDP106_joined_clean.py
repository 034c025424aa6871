import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def number():
    return dist.get_rank() if dist.is_initialized() else 0


def main():
    dist.init_process_group("nccl", rank=int(os.getenv("LOCAL_RANK", "0")))
    device = torch.device(f"cuda:{number()}")
    net = nn.Linear(8, 1).to(device)
    model = DistributedDataParallel(net, device_ids=[dist.get_rank()])
    model(torch.randn(4, 8, device=device)).mean().backward()


if __name__ == "__main__":
    main()
