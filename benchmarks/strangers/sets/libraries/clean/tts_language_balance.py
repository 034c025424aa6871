"""Multilingual text-to-speech fine-tuning; languages are balanced by a weighted sampler."""
from collections import Counter

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler, WeightedRandomSampler


class Settings:
    use_language_weighted_sampler = True
    sampler_seed = 12
    batch_size = 4
    epochs = 2
    lr = 4e-3


class Sentences(Dataset):
    def __init__(self, n=96):
        g = torch.Generator().manual_seed(14)
        self.lang = ["en" if i % 6 else "et" for i in range(n)]
        self.text = torch.randint(1, 30, (n, 12), generator=g)
        self.mel = torch.randn(30, 10, generator=g)

    def __len__(self):
        return len(self.lang)

    def __getitem__(self, i):
        return i, self.text[i], self.mel[self.text[i]]


class EpochSampler:
    """WeightedRandomSampler whose draw is fixed by seed and epoch."""

    def __init__(self, weights, n, seed):
        self.weights, self.n, self.seed, self.epoch = weights, n, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.n

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        return iter(WeightedRandomSampler(self.weights, self.n, generator=g))


class ShardOf:
    """The part of another sampler's draw that belongs to this rank."""

    def __init__(self, sampler, rank, world):
        self.sampler, self.rank, self.world = sampler, rank, world

    def set_epoch(self, epoch):
        self.sampler.set_epoch(epoch)

    def __len__(self):
        return len(self.sampler) // self.world

    def __iter__(self):
        drawn = list(self.sampler)[:len(self) * self.world]
        return iter(drawn[self.rank::self.world])


class Acoustic(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(30, 24)
        self.conv = nn.Conv1d(24, 24, 3, padding=1)
        self.mel = nn.Linear(24, 10)

    def forward(self, text):
        h = torch.relu(self.conv(self.emb(text).transpose(1, 2)))
        return self.mel(h.transpose(1, 2))


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.data = Sentences()
        torch.manual_seed(0)
        self.model = DDP(Acoustic())
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)

    def get_sampler(self):
        if self.cfg.use_language_weighted_sampler:
            freq = Counter(self.data.lang)
            weights = [1.0 / freq[l] for l in self.data.lang]
            balanced = EpochSampler(weights, len(self.data), self.cfg.sampler_seed)
            return ShardOf(balanced, self.rank, self.world)
        return DistributedSampler(self.data, self.world, self.rank, seed=self.cfg.sampler_seed)

    def fit(self):
        sampler = self.get_sampler()
        loader = DataLoader(self.data, batch_size=self.cfg.batch_size, sampler=sampler)
        for epoch in range(self.cfg.epochs):
            sampler.set_epoch(epoch)
            for step, (ids, text, mel) in enumerate(loader):
                loss = nn.functional.l1_loss(self.model(text), mel)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            print(f"[{self.rank}] epoch {epoch}: {step + 1} steps, loss here {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Trainer(Settings()).fit()
    dist.barrier()
    dist.destroy_process_group()
