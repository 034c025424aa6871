import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class Expert(nn.Sequential):
    def __init__(self, dim, mult=2):
        super().__init__(nn.Linear(dim, dim * mult), nn.GELU(), nn.Linear(dim * mult, dim))


class SwitchLayer(nn.Module):
    """Top-1 routing: each token goes to one expert, its output is weighted with the gate."""

    def __init__(self, dim, n_experts):
        super().__init__()
        self.gate = nn.Linear(dim, n_experts)
        self.experts = nn.ModuleList(Expert(dim) for _ in range(n_experts))

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        weight, choice = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            rows = (choice == k).nonzero(as_tuple=True)[0]
            if rows.numel() == 0:
                continue
            out = out.index_add(0, rows, expert(x[rows]) * weight[rows, None])
        return out.view(shape)


class MoEClassifier(nn.Module):
    def __init__(self, vocab, dim, n_experts, classes):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.norm = nn.LayerNorm(dim)
        self.moe = SwitchLayer(dim, n_experts)
        self.head = nn.Linear(dim, classes)

    def forward(self, ids):
        h = self.emb(ids)
        h = h + self.moe(self.norm(h))
        return self.head(h.mean(1))


class Trainer:
    def __init__(self, opts):
        self.opts = opts
        self.rank = dist.get_rank()
        torch.manual_seed(opts.seed)
        model = MoEClassifier(opts.vocab, opts.dim, opts.experts, 4)
        self.model = DistributedDataParallel(model)
        self.optim = torch.optim.AdamW(self.model.parameters(), lr=opts.lr)
        self.gen = torch.Generator().manual_seed(opts.seed + 1 + self.rank)

    def batch(self):
        o = self.opts
        ids = torch.randint(0, o.vocab, (o.batch, o.length), generator=self.gen)
        return ids, ids.sum(1) % 4

    def run(self):
        for step in range(self.opts.steps):
            ids, y = self.batch()
            loss = F.cross_entropy(self.model(ids), y)
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            if self.rank == 0 and step % 10 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--vocab", type=int, default=64)
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--experts", type=int, default=6)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--length", type=int, default=6)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=3)
    return p.parse_args()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group(backend="gloo")
    try:
        Trainer(options()).run()
    finally:
        dist.destroy_process_group()
