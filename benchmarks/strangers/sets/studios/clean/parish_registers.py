"""Surname spelling model with one small adapter per parish language.

Most updates only touch one adapter, so the transfer of gradients is done by a
hook of our own that keeps the traffic on the slow link low.
"""
import argparse
import datetime

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

LANGS = ("sv", "fi", "et", "de")


class Adapter(nn.Module):
    def __init__(self, dim, rank):
        super().__init__()
        self.down = nn.Linear(dim, rank, bias=False)
        self.up = nn.Linear(rank, dim, bias=False)

    def forward(self, h):
        return self.up(self.down(h).tanh())


class Speller(nn.Module):
    def __init__(self, letters=30, dim=64, bottleneck=128):
        super().__init__()
        self.embed = nn.Embedding(letters, dim)
        self.body = nn.GRU(dim, dim, batch_first=True)
        self.adapters = nn.ModuleList(Adapter(dim, bottleneck) for _ in LANGS)
        self.out = nn.Linear(dim, letters)

    def forward(self, chars, lang):
        h, _ = self.body(self.embed(chars))
        extra = 0
        for k, adapter in enumerate(self.adapters):
            gate = (lang == k).to(h.dtype).view(-1, 1, 1)
            extra = extra + gate * adapter(h)
        return self.out(h + extra)


def thrifty_hook(group, bucket):
    """DDP communication hook: mean over the group."""
    grads = bucket.buffer()
    grads.div_(dist.get_world_size(group))
    work = dist.all_reduce(grads, group=group, async_op=True).get_future()
    return work.then(lambda f: f.value()[0])


def register(n, letters, seed):
    g = torch.Generator().manual_seed(seed)
    lang = torch.randint(0, len(LANGS), (n,), generator=g)
    start = torch.randint(1, letters, (n, 1), generator=g)
    step = (lang + 2).unsqueeze(1)
    chars = (start + step * torch.arange(10)) % letters
    return chars, lang


def cli():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=6)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--bucket-mb", type=float, default=0.06)
    return p.parse_args()


def main():
    a = cli()
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(21)
    chars, lang = register(480, 30, seed=2)
    net = DistributedDataParallel(Speller(), bucket_cap_mb=a.bucket_mb)
    net.register_comm_hook(dist.group.WORLD, thrifty_hook)
    opt = torch.optim.Adam(net.parameters(), lr=a.lr)
    for epoch in range(a.epochs):
        order = torch.randperm(len(chars), generator=torch.Generator().manual_seed(epoch))
        mine = order[rank::world]
        running = 0.0
        for rows in mine.split(a.batch):
            c = chars[rows]
            logits = net(c[:, :-1], lang[rows])
            loss = F.cross_entropy(logits.flatten(0, 1), c[:, 1:].flatten())
            opt.zero_grad(set_to_none=False)
            loss.backward()
            opt.step()
            running += loss.item() * len(rows)
        if rank == 0:
            print(f"epoch {epoch} loss {running / len(mine):.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
