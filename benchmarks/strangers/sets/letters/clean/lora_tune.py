"""Adapter tuning of a tiny causal LM, with snapshots by the clock."""
import os
import tempfile
import time
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Config:
    vocab: int = 400
    width: int = 96
    rank: int = 4
    seq: int = 24
    batch: int = 8
    steps: int = 260
    lr: float = 2e-3
    snapshot_every_s: float = 0.2
    out: str = field(default_factory=lambda: os.path.join(tempfile.gettempdir(), "lora_tune"))


class LoRA(nn.Module):
    def __init__(self, base, r):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, r, bias=False)
        self.up = nn.Linear(r, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class TinyLM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.emb = nn.Embedding(c.vocab, c.width).requires_grad_(False)
        self.q = LoRA(nn.Linear(c.width, c.width), c.rank)
        self.v = LoRA(nn.Linear(c.width, c.width), c.rank)
        self.ff = LoRA(nn.Linear(c.width, c.width), c.rank)
        self.bulk = nn.Embedding(60000, c.width).requires_grad_(False)
        self.head = nn.Linear(c.width, c.vocab).requires_grad_(False)

    def forward(self, ids):
        h = self.emb(ids) + self.bulk(ids)
        att = self.q(h) @ h.transpose(1, 2) / h.shape[-1] ** 0.5
        mask = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
        h = h + att.masked_fill(~mask, -1e9).softmax(-1) @ self.v(h)
        return self.head(h + F.gelu(self.ff(h)))


def token_stream(c, rank):
    g = torch.Generator().manual_seed(31 + rank)
    while True:
        start = torch.randint(0, c.vocab, (c.batch, 1), generator=g)
        stride = torch.randint(1, 4, (c.batch, 1), generator=g)
        yield (start + stride * torch.arange(c.seq + 1)) % c.vocab


def snapshotter(c, net, opt):
    last = time.monotonic()

    def maybe(step):
        nonlocal last
        due = torch.tensor([int(time.monotonic() - last >= c.snapshot_every_s)])
        dist.broadcast(due, src=0)
        if not due.item():
            return False
        states = [None] * dist.get_world_size()
        dist.all_gather_object(states, torch.get_rng_state())
        if dist.get_rank() == 0:
            os.makedirs(c.out, exist_ok=True)
            torch.save({"net": net.module.state_dict(), "opt": opt.state_dict(), "rng": states, "step": step},
                       os.path.join(c.out, "last.pt"))
        last = time.monotonic()
        return True

    return maybe


def main():
    c = Config()
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = DDP(TinyLM(c))
    opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=c.lr)
    snapshot = snapshotter(c, net, opt)
    stream = token_stream(c, dist.get_rank())
    for step in range(1, c.steps + 1):
        ids = next(stream)
        loss = F.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if snapshot(step):
            print(f"rank {dist.get_rank()} step {step} loss {loss.item():.3f} (snapshot)", flush=True)
    if dist.get_rank() == 0:
        print("done", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
