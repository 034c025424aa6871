"""Two-tower product search. Started with `python retrieval_scoreboard.py`."""
import os
import socket
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


@dataclass
class Settings:
    procs: int = 2
    items: int = 60
    dim: int = 12
    rounds: int = 3
    iters: int = 20
    port: int = 0
    topk: tuple = (1, 5)
    seeds: dict = field(default_factory=lambda: {"init": 3, "data": 30})


class HitRate:
    """Streaming recall@k over everything that was seen since the last reset."""

    def __init__(self, k):
        self.k = k
        self.reset()

    def reset(self):
        self.hits = torch.zeros((), dtype=torch.double)
        self.seen = torch.zeros((), dtype=torch.double)

    def update(self, scores, gold):
        top = scores.topk(self.k, dim=1).indices
        self.hits += (top == gold[:, None]).any(1).sum()
        self.seen += len(gold)

    @property
    def value(self):
        both = torch.stack([self.hits, self.seen])
        dist.all_reduce(both)
        return (both[0] / both[1]).item()

    def __format__(self, spec):
        return format(self.value, spec or ".3f")


class Scoreboard:
    def __init__(self, metrics, enabled):
        self.metrics, self.enabled = metrics, enabled
        self.history = []

    def post(self, title):
        line = "  ".join(f"{name} {m:.3f}" for name, m in self.metrics.items())
        if self.enabled:
            self.history.append(line)
            print(f"{title}: {line}", flush=True)


class Towers(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.item = nn.Embedding(s.items, s.dim)
        self.query = nn.Sequential(nn.Linear(s.dim, 32), nn.ReLU(), nn.Linear(32, s.dim))

    def forward(self, q):
        return F.normalize(self.query(q), dim=1) @ F.normalize(self.item.weight, dim=1).T * 8


def sample(n, latent, g):
    gold = torch.randint(0, len(latent), (n,), generator=g)
    return latent[gold] + 0.3 * torch.randn(n, latent.size(1), generator=g), gold


def worker(rank, s):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(s.port))
    dist.init_process_group("gloo", rank=rank, world_size=s.procs)
    torch.manual_seed(s.seeds["init"])
    latent = torch.randn(s.items, s.dim)
    model = DistributedDataParallel(Towers(s))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    g = torch.Generator().manual_seed(s.seeds["data"] + rank)
    metrics = {f"recall@{k}": HitRate(k) for k in s.topk}
    board = Scoreboard(metrics, enabled=(rank == 0))
    for r in range(s.rounds):
        for _ in range(s.iters):
            q, gold = sample(32, latent, g)
            loss = F.cross_entropy(model(q), gold)
            opt.zero_grad()
            loss.backward()
            opt.step()
        for m in metrics.values():
            m.reset()
        with torch.no_grad():
            for _ in range(4):
                q, gold = sample(32, latent, g)
                scores = model(q)
                for m in metrics.values():
                    m.update(scores, gold)
        board.post(f"round {r}")
        dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    conf = Settings()
    with socket.socket() as sk:
        sk.bind(("127.0.0.1", 0))
        conf.port = sk.getsockname()[1]
    mp.spawn(worker, args=(conf,), nprocs=conf.procs)
