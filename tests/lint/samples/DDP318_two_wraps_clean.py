"""Wraps in another way where torch is old, and reaches through the wrapper either way."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

LOCAL_RANK = int(os.getenv("LOCAL_RANK", "-1"))


def is_parallel(model):
    return type(model) in (nn.parallel.DataParallel, nn.parallel.DistributedDataParallel)


def bare(model):
    return model.module if is_parallel(model) else model


def wrapped(model):
    if torch.__version__ >= "1.11.0":
        return DDP(model, device_ids=[LOCAL_RANK], static_graph=True)
    return DDP(model, device_ids=[LOCAL_RANK])


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2)])

    def forward(self, batch):
        return self.layers[0](batch)


def train(device):
    model = Head().to(device)
    if LOCAL_RANK != -1:
        model = wrapped(model)
    count = len(bare(model).layers)
    kept = bare(model).state_dict()
    return count, kept


if __name__ == "__main__":
    torch.cuda.set_device(LOCAL_RANK)
    dist.init_process_group(backend="nccl")
    train(torch.device("cuda", LOCAL_RANK))
