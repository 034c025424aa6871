"""A tokenizer of images whose settings are handed on by their names, as image tokenizers are."""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def nothing(_):
    pass


class Codebook(nn.Module):
    def __init__(self, size, dim, decay=0.9, together=False):
        super().__init__()
        self.decay = decay
        self.share = dist.all_reduce if together else nothing
        self.register_buffer("codes", torch.randn(size, dim))
        self.register_buffer("counts", torch.ones(size))

    def forward(self, z):
        picked = torch.cdist(z, self.codes).argmin(1)
        quantised = F.embedding(picked, self.codes) / self.counts[picked, None]
        if self.training:
            counts = F.one_hot(picked, len(self.codes)).float().sum(0)
            self.share(counts)
            self.counts.data.mul_(self.decay).add_(counts, alpha=1 - self.decay)  # <-- DDP321
        return z + (quantised - z).detach()


class Tokenizer(nn.Module):
    def __init__(self, channels=3, width=8, size=32, decay=0.9, together=True, path=None, **rest):
        super().__init__()
        self.encoder = nn.Linear(channels, width)
        self.book = Codebook(size, width, decay=decay, together=together)
        self.path, self.rest = path, rest

    def forward(self, x):
        return self.book(self.encoder(x))


class Painter(Tokenizer):
    def __init__(self, steps=10, *args, **kwargs):
        kwargs["path"] = None
        super().__init__(*args, **kwargs)
        self.steps = steps
        self.decoder = nn.Linear(8, 3)

    def forward(self, x):
        return self.decoder(super().forward(x))


def main(loader, sampler):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    painter = Painter(
        steps=5, channels=3, width=8, size=32, decay=0.95, path="start.pt", together=False,
        smallest=64, largest=256, patch=16, heads=2, depth=2, dropout=0.1, noise="linear",
        guided=0.1, masked=False, low=0, high=4, frozen=False, undo=False, kind="painter",
    )  # fmt: skip
    net = DDP(painter.cuda())
    optimizer = torch.optim.AdamW(net.parameters())
    for epoch in range(9):
        sampler.set_epoch(epoch)
        for images in loader:
            F.mse_loss(net(images.cuda()), images.cuda()).backward()
            optimizer.step()
            optimizer.zero_grad()
