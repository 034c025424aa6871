import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, path, epochs):
    start = 0
    if dist.get_rank() == 0 and os.path.exists(path):
        state = torch.load(path, map_location="cpu")
        net.load_state_dict(state["net"])
        start = state["epoch"] + 1
    holder = [start]
    dist.broadcast_object_list(holder, src=0)
    model = DDP(net)
    for epoch in range(holder[0], epochs):
        model(epoch).backward()


def weights_alone(net, path):
    if dist.get_rank() == 0:
        state = torch.load(path, map_location="cpu")
        net.load_state_dict(state["net"])
    return DDP(net)


def resume(optimizer, state):
    optimizer.load_state_dict(state)


def best_of_the_main_process(net, path, scores):
    best = 0.0
    if dist.get_rank() == 0:
        state = torch.load(path, map_location="cpu")
        best = state["best"]
    model = DDP(net)
    for score in scores:
        if dist.get_rank() == 0 and score > best:
            print(model)
