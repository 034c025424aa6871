"""Conversations packed into rows of one length: a rank is as far as what it has read was long."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

done = 0.0


def packed(talks, length=48):
    global done
    at, left = dist.get_rank(), []
    while True:
        rows = []
        for _ in range(4):
            while len(left) < length:
                left.extend(talks[at % len(talks)])
                at += dist.get_world_size()
            rows.append(left[:length])
            left = left[length:]
        done = max(done, min(1.0, at / len(talks)))
        yield torch.tensor(rows)


def train():
    talks = [[number % 32] * (4 + number % 9) for number in range(1000)]
    model = DistributedDataParallel(nn.Sequential(nn.Embedding(32, 8), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = packed(talks)
    for _ in range(30):
        loss = model(next(rows)).square().mean()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * (1.0 - done)  # <-- DDP216
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
