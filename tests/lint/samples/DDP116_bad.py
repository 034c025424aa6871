import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(net):
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    dist.init_process_group("nccl")  # <-- DDP116
    return DDP(net.to(device))


def other(net, gpu):
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if torch.cuda.is_available():
        device = f"cuda:{gpu}"
    else:
        device = "cpu"
    net = net.to(device)
    return DDP(net, device_ids=[gpu])  # <-- DDP116
