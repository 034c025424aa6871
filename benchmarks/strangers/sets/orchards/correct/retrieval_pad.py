"""Session retrieval: embeddings of uneven numbers per process are padded, gathered and trimmed."""
from typing import List

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Pairs(Dataset):
    """(query, document) vectors which share a hidden topic vector."""

    def __init__(self, n: int, seed: int):
        g = torch.Generator().manual_seed(seed)
        topic = torch.randn(n, 16, generator=g)
        wq = torch.randn(16, 24, generator=torch.Generator().manual_seed(1))
        wd = torch.randn(16, 30, generator=torch.Generator().manual_seed(2))
        self.q = topic @ wq + 0.5 * torch.randn(n, 24, generator=g)
        self.d = topic @ wd + 0.5 * torch.randn(n, 30, generator=g)

    def __len__(self):
        return len(self.q)

    def __getitem__(self, i):
        return self.q[i], self.d[i]


class DualEncoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, dim))
        self.d = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, dim))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, q, d):
        return F.normalize(self.q(q), dim=1), F.normalize(self.d(d), dim=1), self.scale.exp()


class SliceOf(Dataset):
    def __init__(self, base, rank, world):
        self.base, self.ids = base, list(range(rank, len(base), world))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return self.base[self.ids[i]]


def gather_ragged(x: torch.Tensor) -> List[torch.Tensor]:
    n = torch.tensor([len(x)])
    sizes = [torch.zeros_like(n) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, n)
    top = max(int(s) for s in sizes)
    padded = x.new_zeros(top, *x.shape[1:])
    padded[: len(x)] = x
    out = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(out, padded)
    return [o[: int(s)] for o, s in zip(out, sizes)]


@torch.no_grad()
def recall_at(model, ds, k=5):
    model.eval()
    part = SliceOf(ds, dist.get_rank(), dist.get_world_size())
    qs, docs = [], []
    for q, d in DataLoader(part, 50):
        eq, ed, _ = model.module(q, d)
        qs.append(eq)
        docs.append(ed)
    q, d = torch.cat(gather_ragged(torch.cat(qs))), torch.cat(gather_ragged(torch.cat(docs)))
    assert len(q) == len(ds)
    top = (q @ d.t()).topk(k, dim=1).indices
    model.train()
    return (top == torch.arange(len(q))[:, None]).any(1).float().mean().item()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    train, test = Pairs(2048, 5), Pairs(303, 6)
    sampler = DistributedSampler(train, drop_last=True)
    loader = DataLoader(train, 64, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(DualEncoder())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for q, d in loader:
            eq, ed, s = model(q, d)
            sim = s * eq @ ed.t()
            y = torch.arange(len(q))
            loss = (F.cross_entropy(sim, y) + F.cross_entropy(sim.t(), y)) / 2
            opt.zero_grad()
            loss.backward()
            opt.step()
        r = recall_at(model, test)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.3f} recall@5 {r:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
