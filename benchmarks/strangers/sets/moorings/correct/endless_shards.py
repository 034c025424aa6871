"""Ad clicks in shards of unequal length: the streams are endless and training goes by steps, not by epochs."""
import itertools
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class ClickShards(IterableDataset):
    ROWS = [90, 40, 150, 25, 60]

    def __init__(self, rank, world):
        self.mine = list(range(len(self.ROWS)))[rank::world]

    def __iter__(self):
        for shard in self.mine:
            g = torch.Generator().manual_seed(shard)
            x = torch.randn(self.ROWS[shard], 16, generator=g)
            yield from zip(x, (x[:, 0] + x[:, 1] * x[:, 2] > 0.5).float())


def forever(loader):
    while True:
        yield from loader


def train(rank, world, max_steps=60, eval_every=20):
    torch.manual_seed(0)
    loader = DataLoader(ClickShards(rank, world), batch_size=16)
    model = DDP(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
    stream = forever(loader)
    window = torch.zeros(2)
    for step, (x, y) in enumerate(itertools.islice(stream, max_steps), start=1):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        window += torch.tensor([loss.item() * len(y), float(len(y))])
        if step % eval_every == 0:
            total = window.clone()
            dist.all_reduce(total)
            window.zero_()
            if rank == 0:
                print(f"step {step} loss {(total[0] / total[1]).item():.4f} over {int(total[1])} rows", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    dist.destroy_process_group()
