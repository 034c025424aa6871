"""Dual encoder for question to passage retrieval with an index refresh per epoch."""
import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Pairs:
    """Synthetic question and passage vectors that share a topic code."""

    def __init__(self, pairs, dim, seed=0):
        g = torch.Generator().manual_seed(seed)
        topic = torch.randn(pairs, dim, generator=g)
        self.question = topic + 0.3 * torch.randn(pairs, dim, generator=g)
        self.passage = topic.roll(1, 1) + 0.3 * torch.randn(pairs, dim, generator=g)

    def __len__(self):
        return len(self.question)


class DualEncoder(nn.Module):
    def __init__(self, dim, out=16):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, out))
        self.p = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, out))

    def forward(self, q, p):
        return F.normalize(self.q(q), dim=-1), F.normalize(self.p(p), dim=-1)


def shard(n, rank, world):
    return torch.arange(rank, n, world)


class PassageIndex:
    """All passage vectors, encoded in parallel."""

    def __init__(self, world):
        self.world = world
        self.vectors = None
        self.ids = None

    def refresh(self, encode, passages, ids):
        mine = encode(passages[ids])
        sizes = [torch.zeros(1, dtype=torch.long) for _ in range(self.world)]
        dist.all_gather(sizes, torch.tensor([len(ids)]))
        most = int(max(sizes))
        mine = F.pad(mine, (0, 0, 0, most - len(ids)))
        ids = F.pad(ids, (0, most - len(ids)))
        parts = [torch.empty_like(mine) for _ in range(self.world)]
        dist.all_gather(parts, mine)
        keys = [torch.empty_like(ids) for _ in range(self.world)]
        dist.all_gather(keys, ids)
        parts = [v[: int(n)] for v, n in zip(parts, sizes)]
        keys = [k[: int(n)] for k, n in zip(keys, sizes)]
        self.vectors, self.ids = torch.cat(parts), torch.cat(keys)

    def top1(self, queries):
        return self.ids[(queries @ self.vectors.T).argmax(1)]


def train_epoch(model, opt, data, ids, batch, gen):
    usable = len(data) // dist.get_world_size() // batch * batch
    order = ids[torch.randperm(len(ids), generator=gen)][:usable]
    for pick in order.split(batch):
        q, p = model(data.question[pick], data.passage[pick])
        loss = F.cross_entropy(q @ p.T / 0.1, torch.arange(len(pick)))
        opt.zero_grad()
        loss.backward()
        opt.step()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--pairs", type=int, default=301)
    ap.add_argument("--dim", type=int, default=24)
    ap.add_argument("--batch", type=int, default=25)
    ap.add_argument("--epochs", type=int, default=3)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(4)
    data = Pairs(args.pairs, args.dim)
    ids = shard(len(data), rank, world)
    model = DistributedDataParallel(DualEncoder(args.dim))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    index = PassageIndex(world)
    gen = torch.Generator().manual_seed(rank)
    for epoch in range(args.epochs):
        train_epoch(model, opt, data, ids, args.batch, gen)
        with torch.no_grad():
            index.refresh(lambda p: F.normalize(model.module.p(p), dim=-1), data.passage, ids)
            queries = F.normalize(model.module.q(data.question[ids]), dim=-1)
            hits = (index.top1(queries) == ids).sum()
        dist.all_reduce(hits)
        if rank == 0:
            print(f"epoch {epoch} recall@1 {hits.item() / len(data):.3f}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
