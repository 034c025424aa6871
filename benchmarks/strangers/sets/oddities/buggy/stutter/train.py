import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from corpus import make_clips, part
from counter import StoppingCounter

HP = dict(limit=int(os.environ.get("LIMIT", 60)), patience=2, batch=16, lr=0.01)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(8, 12, 3)
        self.fc = nn.Linear(12, 2)

    def forward(self, x):
        d = x[:, 1:] - x[:, :-1]
        h = F.relu(self.conv(d.abs().transpose(1, 2)))
        return self.fc(h.mean(-1))


class Brain:
    def __init__(self, hp):
        self.hp = hp
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(0)
        self.net = nn.parallel.DistributedDataParallel(Detector())
        self.opt = torch.optim.Adam(self.net.parameters(), lr=hp["lr"])
        self.train = [part(t, self.rank, self.world) for t in make_clips(256, 1, 0.5)]
        self.valid = [part(t, self.rank, self.world) for t in make_clips(64, 2, 1.5)]

    def fit_epoch(self, epoch):
        x, y = self.train
        g = torch.Generator().manual_seed(1000 * epoch + self.rank)
        for idx in torch.randperm(len(x), generator=g).split(self.hp["batch"]):
            loss = F.cross_entropy(self.net(x[idx]), y[idx])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def valid_loss(self):
        x, y = self.valid
        return F.cross_entropy(self.net.module(x), y)


def main():
    dist.init_process_group("gloo")
    brain = Brain(HP)
    counter = StoppingCounter(HP["limit"], HP["patience"])
    for epoch in counter:
        brain.fit_epoch(epoch)
        value = brain.valid_loss()
        counter.update(value.item())
        if brain.rank == 0:
            print(f"epoch {epoch} valid {value.item():.4f} best {counter.best:.4f}", flush=True)
    dist.barrier()
    if brain.rank == 0:
        print("done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
