import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader

from lines import make
from tok import shared_vocab

LIMIT = 200


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(LIMIT, 24, mode="mean")
        self.out = nn.Linear(24, 3)

    def forward(self, ids, offsets):
        return self.out(self.bag(ids, offsets))


def collator(vocab):
    def fn(rows):
        ids, offs = [], []
        for text, _ in rows:
            offs.append(len(ids))
            ids.extend(vocab.get(w, 1) for w in text.lower().split())
        return torch.tensor(ids), torch.tensor(offs), torch.tensor([y for _, y in rows])
    return fn


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    rows = make(part=rank)
    vocab = shared_vocab([t for t, _ in rows], LIMIT)
    torch.manual_seed(2)
    net = nn.parallel.DistributedDataParallel(Model())
    opt = torch.optim.Adam(net.parameters(), lr=2e-2)
    # every process has its own lines, the order is drawn from its own generator
    gen = torch.Generator().manual_seed(100 + rank)
    dl = DataLoader(rows, 30, shuffle=True, generator=gen, collate_fn=collator(vocab))
    for epoch in range(4):
        stats = torch.zeros(3)
        for ids, offs, y in dl:
            out = net(ids, offs)
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            stats += torch.tensor([loss.item() * len(y), (out.argmax(1) == y).sum().item(), len(y)])
        dist.reduce(stats, dst=0)
        if rank == 0:
            print(f"epoch {epoch} loss {stats[0] / stats[2]:.3f} acc {stats[1] / stats[2]:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
