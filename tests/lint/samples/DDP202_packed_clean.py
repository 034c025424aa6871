"""Lists of numbers that are packed into rows: each rank takes every so many of the lists."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    texts = [[number % 32] * 20 for number in range(1000)]
    model = DistributedDataParallel(nn.Sequential(nn.Embedding(32, 8), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    at = dist.get_rank()
    for _ in range(30):
        rows = []
        for _ in range(4):
            rows.append(texts[at % len(texts)])
            at += dist.get_world_size()
        loss = model(torch.tensor(rows)[:, :-1]).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
