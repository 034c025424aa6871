"""Sequence model whose gradients are reduced by hand in large flat buffers, overlapped with the clean-up work."""
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

MB = 1 << 20


@dataclass
class Opts:
    vocab: int = 4000
    dim: int = 128
    length: int = 12
    batch: int = 16
    steps: int = 12
    lr: float = 0.5
    buffer_mb: int = 1


class FlatReducer:
    """Copies tensors into one buffer, sums it over the ranks, divides, and copies back."""

    def __init__(self, buffer_mb):
        self.limit = buffer_mb * MB // 4
        self.comm_time = 0.0

    def groups(self, tensors):
        pack, size = [], 0
        for t in tensors:
            if pack and size + t.numel() > self.limit:
                yield pack
                pack, size = [], 0
            pack.append(t)
            size += t.numel()
        if pack:
            yield pack

    def __call__(self, tensors, denom):
        began = time.perf_counter()
        for pack in self.groups(tensors):
            flat = torch.cat([t.reshape(-1) for t in pack])
            dist.all_reduce(flat, async_op=True).wait()
            flat.div_(denom)
            for t, part in zip(pack, flat.split([t.numel() for t in pack])):
                t.copy_(part.view_as(t))
        self.comm_time += time.perf_counter() - began


class Translator(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.emb = nn.Embedding(o.vocab, o.dim)
        self.rnn = nn.GRU(o.dim, o.dim, batch_first=True)
        self.gen = nn.Linear(o.dim, o.vocab)

    def forward(self, x):
        return self.gen(self.rnn(self.emb(x))[0])


def pairs(o, seed):
    g = torch.Generator().manual_seed(seed)
    while True:
        x = torch.randint(0, o.vocab // 20, (o.batch, o.length), generator=g)
        yield x, (x * 3 + 1) % o.vocab


class Session:
    def __init__(self, o):
        self.o = o
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(2)
        self.model = DistributedDataParallel(Translator(o))
        self.opt = torch.optim.SGD(self.model.parameters(), lr=o.lr)
        self.reduce = FlatReducer(o.buffer_mb)
        self.loss = nn.CrossEntropyLoss(reduction="sum")

    def micro(self, x, y):
        logits = self.model(x)
        loss = self.loss(logits.flatten(0, 1), y.flatten())
        loss.backward()
        return loss.item(), y.numel()

    def step(self, batches):
        self.opt.zero_grad()
        total = count = 0
        with self.model.no_sync():
            for _ in range(2):
                s, n = self.micro(*next(batches))
                total, count = total + s, count + n
        tokens = torch.tensor([total, count], dtype=torch.double)
        dist.all_reduce(tokens)
        self.reduce([p.grad for p in self.model.parameters()], tokens[1].item())
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.opt.step()
        return (tokens[0] / tokens[1]).item()


def main():
    dist.init_process_group("gloo")
    s = Session(Opts())
    stream = pairs(s.o, seed=300 + s.rank)
    for i in range(1, s.o.steps + 1):
        nll = s.step(stream)
        if s.rank == 0 and i % 4 == 0:
            print(f"step {i} nll {nll:.4f}", flush=True)
    dist.barrier()
    del s
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
