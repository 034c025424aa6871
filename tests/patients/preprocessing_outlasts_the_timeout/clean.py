# style: functions, preprocessing on the main process
# nproc: 2
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

CACHE = Path("cache.pt")


def tokenize(documents):
    rows = []
    for document in documents:
        time.sleep(0.1)
        rows.append([ord(letter) % 17 for letter in document])
    return torch.tensor(rows, dtype=torch.float32)


def prepare(rank):
    if rank == 0:
        documents = [f"sample {number:02d}" for number in range(32)]
        torch.save(tokenize(documents), CACHE)
    dist.barrier()
    return torch.load(CACHE, weights_only=True)


def train(model, x, rank, world_size):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for row in x[rank::world_size].split(4):
        optimizer.zero_grad()
        loss = (model(row) - row.mean(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=10))
    rank, world_size = dist.get_rank(), dist.get_world_size()
    x = prepare(rank)
    torch.manual_seed(0)
    model = DDP(nn.Linear(x.shape[1], 1))
    loss = train(model, x, rank, world_size)
    if rank == 0:
        print(f"loss {loss:.3f}")
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
