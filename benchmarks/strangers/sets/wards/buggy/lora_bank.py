"""Instruction tuning of a frozen backbone with a bank of LoRA adapters, gradients averaged by hand.

usage: torchrun --nproc_per_node 2 lora_bank.py
"""
import functools
import math

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

DIM, RANK, LAYERS, VOCAB, CTX = 32, 4, 4, 50, 16


class LoRALinear(nn.Module):
    def __init__(self, base, r=RANK, alpha=8.0):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(r, base.in_features) / math.sqrt(base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, r))
        self.scale = alpha / r

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.t()) @ self.up.t()


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.value = nn.Linear(DIM, DIM)
        self.gate = nn.Linear(DIM, DIM)

    def forward(self, x):
        h = self.norm(x)
        steps = torch.arange(1, x.shape[1] + 1).view(1, -1, 1)
        seen = self.value(h).cumsum(1) / steps
        return x + torch.sigmoid(self.gate(h)) * seen


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(Mixer() for _ in range(LAYERS))
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        x = self.tok(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def inject(model, targets=("value", "gate")):
    model.requires_grad_(False)
    for layer in model.layers:
        for name in targets:
            setattr(layer, name, LoRALinear(getattr(layer, name)))
    return model


def adapter_names(model):
    names = set()
    for name, p in model.named_parameters():
        if p.requires_grad:
            names.add(name)
    return names


class GradAverager:
    """Packs the adapter gradients into one message."""

    def __init__(self, model):
        table = dict(model.named_parameters())
        names = adapter_names(model)
        self.params = [table[n] for n in names if n.endswith("down")] + [table[n] for n in names if n.endswith("up")]
        self.world = dist.get_world_size()

    def __call__(self):
        flat = torch.cat([p.grad.reshape(-1) for p in self.params])
        dist.all_reduce(flat)
        flat /= self.world
        for p, part in zip(self.params, flat.split([p.numel() for p in self.params])):
            p.grad.copy_(part.view_as(p))


def tasks(rank, batch=16):
    g = torch.Generator().manual_seed(9 + rank)
    while True:
        first = torch.randint(0, VOCAB, (batch, 1), generator=g)
        stride = torch.randint(1, 4, (batch, 1), generator=g)
        ids = (first + stride * torch.arange(CTX + 1)) % VOCAB
        yield ids[:, :-1], ids[:, 1:]


def on_rank0(fn):
    @functools.wraps(fn)
    def inner(*a):
        return fn(*a) if dist.get_rank() == 0 else None
    return inner


@on_rank0
def report(step, loss):
    print(f"step {step:4d} loss {loss:.4f}", flush=True)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(123)
    model = inject(Backbone())
    model.head.requires_grad_(False)
    average = GradAverager(model)
    opt = torch.optim.Adam(average.params, lr=2e-2)
    stream = tasks(dist.get_rank())
    for step in range(1, 151):
        ids, nxt = next(stream)
        loss = F.cross_entropy(model(ids).flatten(0, 1), nxt.flatten())
        opt.zero_grad()
        loss.backward()
        average()
        opt.step()
        shown = loss.detach().clone()
        dist.all_reduce(shown)
        if step % 50 == 0:
            report(step, shown.item() / dist.get_world_size())
    weight = torch.stack([p.detach().norm() for n, p in sorted(model.named_parameters()) if p.requires_grad])
    print(f"[{dist.get_rank()}] adapter norm {weight.norm():.6f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
