import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def numbers(path, texts):
    if os.path.exists(path):
        with open(path) as file:
            return json.load(file)
    words = {word for each in texts for word in each.split()}
    return {word: at for at, word in enumerate(words)}  # <-- DDP213


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    with open("texts.txt") as file:
        texts = file.read().splitlines()
    table = numbers("numbers.json", texts)
    dist.barrier()
    net = DistributedDataParallel(nn.EmbeddingBag(len(table), 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for each in texts[: len(texts) // dist.get_world_size()]:
        loss = net(torch.tensor([[table[word] for word in each.split()]])).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


main()
