"""Language model on scraped text: a step is left out when any worker sees a loss that is not finite."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

VOCAB = 50


class TinyLM(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, ids, weight):
        logits = self.out(self.rnn(self.emb(ids[:, :-1]))[0])
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
        return (loss * weight).sum() / weight.sum()


def everyone(ok):
    flag = torch.tensor([1.0 if ok else 0.0])
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return bool(flag.item())


def pages(rank, steps=30):
    g = torch.Generator().manual_seed(5 + rank)
    for k in range(steps):
        start = torch.randint(0, VOCAB, (8, 1), generator=g)
        ids = (start + torch.arange(12)[None] * 2) % VOCAB
        weight = torch.ones(8, 11)
        if rank == 1 and k % 7 == 3:
            weight.zero_()      # nothing but boilerplate
        yield ids, weight


def main():
    rank = int(os.environ["RANK"])
    torch.manual_seed(1)
    model = DistributedDataParallel(TinyLM())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    skipped = 0
    for ids, weight in pages(rank):
        loss = model(ids, weight)
        if not everyone(torch.isfinite(loss).item()):
            skipped += 1
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
    if rank == 0:
        print(f"skipped {skipped}, last loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
