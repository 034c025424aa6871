import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(net):
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    ids = [local_rank] if device.type == "cuda" else None
    return DDP(net.to(device), device_ids=ids)


def cuda_alone(net, gpu):
    dist.init_process_group("nccl")
    return DDP(net.to("cuda"), device_ids=[gpu])
