import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(net, epochs, path):
    model = DDP(net)
    for _ in range(epochs):
        train(model)
        torch.save(model.module.state_dict(), path)  # <-- DDP502


def train(model):
    print(model)
