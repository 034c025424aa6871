"""Clip captioning model, bf16 autocast, warm-up + cosine, EMA weights. torchrun --nproc-per-node 2 longvideo_captions.py"""
import copy
import math
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass
class Config:
    seed: int = 2024
    clips: int = 240
    words: int = 30
    length: int = 8
    width: int = 48
    batch_size: int = 12
    epochs: int = 3
    lr: float = 3e-3
    warmup: int = 5
    ema: float = 0.95


def launch(config):
    dist.init_process_group("gloo")
    local = config.seed + dist.get_rank()
    random.seed(local)
    np.random.seed(local)
    torch.manual_seed(local)
    return dist.get_rank(), dist.get_world_size()


class Captioner(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.video = nn.GRU(10, c.width, batch_first=True)
        self.embed = nn.Embedding(c.words + 1, c.width)
        self.text = nn.GRU(c.width, c.width, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(c.width, c.words)

    def forward(self, clip, words):
        _, h = self.video(clip)
        shifted = F.pad(words[:, :-1] + 1, (1, 0))
        return self.out(self.drop(self.text(self.embed(shifted), h)[0]))


def clips(c):
    g = torch.Generator().manual_seed(0)
    words = torch.randint(c.words, (c.clips, c.length), generator=g)
    proto = torch.randn(c.words, 10, generator=g)
    return TensorDataset(proto[words] + 0.3 * torch.randn(c.clips, c.length, 10, generator=g), words)


def loader_for(data, c, rank, world):
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True, seed=c.seed, drop_last=True)
    return DataLoader(data, c.batch_size, sampler=sampler, drop_last=True)


def schedule(c, total):
    def factor(s):
        if s < c.warmup:
            return (s + 1) / c.warmup
        return 0.5 * (1 + math.cos(math.pi * (s - c.warmup) / max(1, total - c.warmup)))
    return factor


def main():
    c = Config()
    rank, world = launch(c)
    model = nn.parallel.DistributedDataParallel(Captioner(c))
    ema = copy.deepcopy(model.module).eval().requires_grad_(False)
    loader = loader_for(clips(c), c, rank, world)
    opt = torch.optim.AdamW(model.parameters(), lr=c.lr)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, schedule(c, c.epochs * len(loader)))
    for epoch in range(c.epochs):
        loader.sampler.set_epoch(epoch)
        for clip, words in loader:
            clip = clip * (torch.rand(len(clip), clip.shape[1], 1) > 0.1)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = model(clip, words)
            loss = F.cross_entropy(logits.float().flatten(0, 1), words.flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            with torch.no_grad():
                for a, b in zip(ema.parameters(), model.module.parameters()):
                    a.mul_(c.ema).add_(b, alpha=1 - c.ema)
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"epoch {epoch} loss {mean.item() / world:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
