"""Bag-of-context language model with a wide vocabulary and heavy accumulation."""
import contextlib
import dataclasses
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


@dataclasses.dataclass
class HParams:
    vocab: int = 12000
    dim: int = 256
    context: int = 8
    micro_batch: int = 4
    micro_steps: int = 16
    updates: int = 6
    lr: float = 0.3
    seed: int = 8


class ContextLM(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.embed = nn.Embedding(hp.vocab, hp.dim)
        self.mix = nn.Linear(hp.context * hp.dim, hp.dim)
        self.out = nn.Linear(hp.dim, hp.vocab)

    def forward(self, ctx):
        return self.out(torch.tanh(self.mix(self.embed(ctx).flatten(1))))


class Corpus:
    """Endless synthetic text; each process reads its own stream."""

    def __init__(self, hp, rank):
        self.hp = hp
        self.g = torch.Generator().manual_seed(hp.seed * 1000 + rank)

    def draw(self):
        hp = self.hp
        start = torch.randint(hp.vocab // 50, (hp.micro_batch, 1), generator=self.g)
        seq = (start + torch.arange(hp.context + 1) * 3) % (hp.vocab // 50)
        return seq[:, :-1], seq[:, -1]


class Stepper:
    """One optimizer update made of several micro steps."""

    def __init__(self, model, opt, corpus, hp):
        self.model, self.opt, self.corpus, self.hp = model, opt, corpus, hp

    def quiet(self, last):
        """Leaves the network alone until the final micro step."""
        return contextlib.nullcontext() if last else self.model.no_sync()

    def loss(self):
        ctx, nxt = self.corpus.draw()
        return F.cross_entropy(self.model(ctx), nxt) / self.hp.micro_steps

    def propagate(self, loss, last):
        with self.quiet(last):
            loss.backward()
        return loss.item()

    def update(self):
        self.opt.zero_grad(set_to_none=False)
        total = 0.0
        for k in range(self.hp.micro_steps):
            loss = self.loss()
            total += self.propagate(loss, last=k == self.hp.micro_steps - 1)
        self.opt.step()
        return total


def main():
    hp = HParams()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(hp.seed)
    model = nn.parallel.DistributedDataParallel(ContextLM(hp))
    opt = torch.optim.SGD(model.parameters(), lr=hp.lr)
    stepper = Stepper(model, opt, Corpus(hp, rank), hp)
    begin = time.perf_counter()
    for u in range(hp.updates):
        mean = torch.tensor(stepper.update())
        dist.all_reduce(mean)
        if rank == 0:
            took = time.perf_counter() - begin
            print(f"update {u} loss {mean.item() / world:.4f} {took / (u + 1):.2f} s/update", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
