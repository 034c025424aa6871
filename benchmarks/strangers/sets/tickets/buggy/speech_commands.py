"""Keyword spotting with a small convolutional net. Learning rate follows the dev score (newbob style)."""
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import ReduceLROnPlateau


@dataclass
class Hyper:
    words: int = 12
    frames: int = 24
    lr: float = 6e-3
    factor: float = 0.5
    patience: int = 0
    epochs: int = 12
    batch: int = 24
    channels: list = field(default_factory=lambda: [16, 32])


class Corpus:
    def __init__(self, hyper, utterances, seed, rank, world):
        g = torch.Generator().manual_seed(seed)
        words = torch.randint(0, hyper.words, (utterances,), generator=g)
        shapes = torch.randn(hyper.words, 20, hyper.frames, generator=torch.Generator().manual_seed(0))
        audio = shapes[words] + 2.2 * torch.randn(utterances, 20, hyper.frames, generator=g)
        self.x, self.y = audio[rank::world], words[rank::world]

    def batches(self, size, order=None):
        order = torch.arange(len(self.y)) if order is None else order
        for part in order.split(size):
            yield self.x[part], self.y[part]


class Spotter(nn.Module):
    def __init__(self, hyper):
        super().__init__()
        layers, width = [], 20
        for c in hyper.channels:
            layers += [nn.Conv1d(width, c, 3, padding=1), nn.ReLU()]
            width = c
        self.conv = nn.Sequential(*layers)
        self.out = nn.Linear(width * hyper.frames, hyper.words)

    def forward(self, x):
        return self.out(self.conv(x).flatten(1))


class Experiment:
    def __init__(self, hyper):
        self.hyper = hyper
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(17)
        self.model = nn.parallel.DistributedDataParallel(Spotter(hyper))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=hyper.lr)
        self.sched = ReduceLROnPlateau(self.opt, factor=hyper.factor, patience=hyper.patience)
        self.train = Corpus(hyper, 480, 1, self.rank, self.world)
        self.dev = Corpus(hyper, 160, 2, self.rank, self.world)

    def train_epoch(self, epoch):
        self.model.train()
        g = torch.Generator().manual_seed(epoch)
        for x, y in self.train.batches(self.hyper.batch, torch.randperm(len(self.train.y), generator=g)):
            loss = F.cross_entropy(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def dev_score(self):
        self.model.eval()
        total = sum(F.cross_entropy(self.model(x), y, reduction="sum") for x, y in self.dev.batches(64))
        return total / len(self.dev.y)

    def run(self):
        for epoch in range(self.hyper.epochs):
            self.train_epoch(epoch)
            score = self.dev_score()
            self.sched.step(score.item())
            if self.rank == 0:
                lr = self.opt.param_groups[0]["lr"]
                print(f"epoch {epoch}: dev {score.item():.3f} lr {lr:.5f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Experiment(Hyper()).run()
    dist.destroy_process_group()
