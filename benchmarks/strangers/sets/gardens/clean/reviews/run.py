from argparse import ArgumentParser

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from dataset import load


class BagClassifier(nn.Module):
    def __init__(self, n_words, dim=32):
        super().__init__()
        self.words = nn.Embedding(n_words, dim, padding_idx=0)
        self.head = nn.Linear(dim, 2)

    def forward(self, ids):
        return self.head(self.words(ids).mean(1))


def cli():
    p = ArgumentParser()
    p.add_argument("--reviews", type=int, default=600)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch", type=int, default=30)
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--seed", type=int, default=14)
    return p.parse_args()


def main(o):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    data, lexicon = load(o.reviews, o.seed, rank, world)
    torch.manual_seed(o.seed)
    model = DistributedDataParallel(BagClassifier(len(lexicon)))
    opt = torch.optim.Adam(model.parameters(), lr=o.lr)
    order = torch.Generator().manual_seed(o.seed + rank)
    loader = DataLoader(data, o.batch, shuffle=True, drop_last=True, generator=order)
    for epoch in range(o.epochs):
        stat = torch.zeros(2)
        for ids, y in loader:
            out = model(ids)
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            stat += torch.tensor([(out.argmax(1) == y).sum().item(), float(len(y))])
        dist.all_reduce(stat)
        if rank == 0:
            print(f"epoch {epoch} train acc {(stat[0] / stat[1]).item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(cli())
