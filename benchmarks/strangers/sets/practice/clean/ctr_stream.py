import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset

# impressions per log file, as they come from the collector
LOG_FILES = [("d1", 160), ("d2", 96), ("d3", 128), ("d4", 104), ("d5", 144), ("d6", 72)]
N_USERS, N_ITEMS = 50, 80


class ClickLog(IterableDataset):
    def __init__(self, files, rank, world):
        self.files = files[rank::world]

    def __iter__(self):
        for name, n in self.files:
            g = torch.Generator().manual_seed(hash_name(name))
            u = torch.randint(N_USERS, (n,), generator=g)
            i = torch.randint(N_ITEMS, (n,), generator=g)
            y = ((u + i) % 3 == 0).float()
            yield from zip(u, i, y)


def hash_name(s):
    return sum(31 ** k * ord(c) for k, c in enumerate(s)) % 10_000


class TwoTower(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.user = nn.Embedding(N_USERS, d)
        self.item = nn.Embedding(N_ITEMS, d)
        self.top = nn.Sequential(nn.Linear(2 * d, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, u, i):
        return self.top(torch.cat([self.user(u), self.item(i)], -1)).squeeze(-1)


def run_epoch(model, opt, loader, steps):
    bce = nn.BCEWithLogitsLoss()
    seen, running = 0, 0.0
    for _, (u, i, y) in zip(range(steps), loader):
        loss = bce(model(u, i), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item() * len(y)
        seen += len(y)
    return running, seen


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    model = DDP(TwoTower())
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
    loader = DataLoader(ClickLog(LOG_FILES, rank, world), batch_size=32)
    steps = torch.tensor(sum(n for _, n in LOG_FILES[rank::world]) // 32)
    dist.all_reduce(steps, op=dist.ReduceOp.MIN)
    for epoch in range(3):
        running, seen = run_epoch(model, opt, loader, int(steps))
        dist.barrier()
        stats = torch.tensor([running, float(seen)])
        dist.all_reduce(stats)
        if rank == 0:
            print(f"epoch {epoch}  logloss {stats[0] / stats[1]:.4f}  on {int(stats[1])}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
