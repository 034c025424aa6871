import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, path, epochs, optimizer):
    start = 0
    if dist.get_rank() == 0 and os.path.exists(path):
        state = torch.load(path, map_location="cpu")  # <-- DDP513
        net.load_state_dict(state["net"])
        start = state["epoch"] + 1
    model = DDP(net)
    for epoch in range(start, epochs):
        print(model, epoch)


def resume(optimizer, state, rank):
    if rank == 0:
        optimizer.load_state_dict(state)  # <-- DDP513
