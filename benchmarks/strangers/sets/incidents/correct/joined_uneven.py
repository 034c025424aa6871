import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP


def load_users(n=173, seed=5):
    rng = random.Random(seed)
    return [([rng.gauss(0, 1) for _ in range(6)], rng.random()) for _ in range(n)]


def my_part(users, rank, world):
    return users[rank::world]


def batches(part, size):
    for i in range(0, len(part), size):
        chunk = part[i:i + size]
        yield torch.tensor([c[0] for c in chunk]), torch.tensor([[c[1]] for c in chunk])


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    part = my_part(load_users(), rank, world)
    if rank == 1:
        part = part[: len(part) // 2]

    for epoch in range(3):
        n, total = 0, 0.0
        with Join([model]):
            for x, y in batches(part, 8):
                opt.zero_grad()
                loss = nn.functional.mse_loss(model(x), y)
                loss.backward()
                opt.step()
                n += 1
                total += loss.item()
        print(f"rank {rank} epoch {epoch}: {n} batches", flush=True)
        stats = torch.tensor([total, float(n)])
        dist.all_reduce(stats)
        if rank == 0:
            print(f"epoch {epoch} mean loss {(stats[0] / stats[1]).item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
