import itertools
from functools import partial

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

TASKS = {"sentiment": 2, "topic": 5}


class SharedEncoder(nn.Module):
    def __init__(self, vocab=100, dim=32):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.GELU())
        self.heads = nn.ModuleDict({k: nn.Linear(dim, n) for k, n in TASKS.items()})

    def forward(self, tokens, task):
        return self.heads[task](self.mlp(self.emb(tokens)))


def batches(task, n_cls, gen, bs=16):
    while True:
        tok = torch.randint(100, (bs, 12), generator=gen)
        yield task, tok, tok.sum(1) % n_cls


def interleave(gen):
    streams = [batches(t, n, gen) for t, n in TASKS.items()]
    for s in itertools.cycle(streams):
        yield next(s)


def update(model, opt, task, tok, y):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(tok, task), y)
    loss.backward()
    opt.step()
    return loss.item()


def main(steps=20):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(SharedEncoder())
    step = partial(update, model, torch.optim.AdamW(model.parameters(), lr=1e-2))
    stream = interleave(torch.Generator().manual_seed(rank))
    for i, (task, tok, y) in enumerate(itertools.islice(stream, steps)):
        value = step(task, tok, y)
        if rank == 0 and i % 5 == 0:
            print(i, task, round(value, 3), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
