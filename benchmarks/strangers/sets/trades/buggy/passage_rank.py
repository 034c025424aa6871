"""Dual encoder for passage retrieval.

Queries have one or more gold passages. After training all passages of the dev
set are embedded in parallel, the index is put together on every rank and each
rank scores its own queries.
"""
import argparse
import random

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

VOCAB, TOPICS = 200, 20


def build_corpus(n_queries, seed):
    rng = random.Random(seed)
    queries, passages = [], []
    for q in range(n_queries):
        topic = rng.randrange(TOPICS)
        base = list(range(topic * 10, topic * 10 + 10))
        queries.append(rng.sample(base, 4) + [rng.randrange(VOCAB)])
        for _ in range(rng.randint(1, 3)):
            text = rng.sample(base, 6) + [rng.randrange(VOCAB) for _ in range(3)]
            passages.append((q, text))
    return queries, passages


class TwoTower(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.q = nn.EmbeddingBag(VOCAB, dim)
        self.p = nn.EmbeddingBag(VOCAB, dim)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, q, p):
        return F.normalize(self.q(q), dim=1), F.normalize(self.p(p), dim=1), self.scale.exp()


def train(model, queries, passages, args, rank):
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    rng = random.Random(args.seed + rank)
    for step in range(args.steps):
        rows = rng.sample(passages, args.batch_size)
        q = torch.tensor([queries[i] for i, _ in rows])
        p = torch.tensor([t for _, t in rows])
        zq, zp, scale = model(q, p)
        loss = F.cross_entropy(scale * zq @ zp.T, torch.arange(len(rows)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)


def gather_rows(x):
    out = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(out, x.contiguous())
    return torch.cat(out)


@torch.no_grad()
def recall_at_k(model, queries, passages, k, rank, world):
    net = model.module
    mine = [(q, t) for q, t in passages if q % world == rank]
    emb = F.normalize(net.p(torch.tensor([t for _, t in mine])), dim=1)
    owner = torch.tensor([q for q, _ in mine])
    index = gather_rows(emb)
    owners = gather_rows(owner)

    my_queries = list(range(rank, len(queries), world))
    zq = F.normalize(net.q(torch.tensor([queries[i] for i in my_queries])), dim=1)
    top = (zq @ index.T).topk(k, dim=1).indices
    hit = (owners[top] == torch.tensor(my_queries)[:, None]).any(1).float()
    stats = torch.tensor([hit.sum().item(), float(len(hit))])
    dist.all_reduce(stats)
    return (stats[0] / stats[1]).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lr", type=float, default=2e-2)
    ap.add_argument("--steps", type=int, default=80)
    ap.add_argument("--batch_size", type=int, default=24)
    ap.add_argument("--seed", type=int, default=12)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)
    model = DistributedDataParallel(TwoTower())
    queries, passages = build_corpus(120, args.seed)
    train(model, queries, passages, args, rank)

    dev_q, dev_p = build_corpus(41, args.seed + 1)
    r = recall_at_k(model, dev_q, dev_p, 5, rank, world)
    if rank == 0:
        print(f"dev recall@5 {r:.3f} over {len(dev_p)} passages", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
