"""Retrieval: query embeddings of all workers are gathered although the workers hold different numbers of them."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def all_gather_ragged(x):
    """Rows may differ between ranks; returns the list of all parts."""
    world = dist.get_world_size()
    sizes = [torch.zeros(1, dtype=torch.long) for _ in range(world)]
    dist.all_gather(sizes, torch.tensor([len(x)]))
    longest = max(int(s) for s in sizes)
    padded = x.new_zeros(longest, *x.shape[1:])
    padded[:len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(parts, padded)
    return [p[:int(s)] for p, s in zip(parts, sizes)]


class TwoTower(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.query, self.doc = nn.Linear(24, dim), nn.Linear(24, dim)

    def forward(self, q, d):
        return F.normalize(self.query(q), dim=1), F.normalize(self.doc(d), dim=1)


def topics(n, gen):
    mix = torch.randn(n, 12, generator=gen)
    basis = torch.randn(12, 24, generator=torch.Generator().manual_seed(0))
    noise = lambda: 0.1 * torch.randn(n, 24, generator=gen)
    return mix @ basis + noise(), mix @ basis + noise()


@torch.no_grad()
def recall_at_1(tower, rank):
    gen = torch.Generator().manual_seed(300 + rank)
    q, d = tower(*topics(20 + 13 * rank, gen))
    docs = torch.cat(all_gather_ragged(d))
    counts = torch.cat([torch.tensor([len(p)]) for p in all_gather_ragged(q)])
    offset = int(counts[:rank].sum())
    hit = (q @ docs.t()).argmax(1) == torch.arange(len(q)) + offset
    score = torch.tensor([hit.sum().item(), len(q)], dtype=torch.float)
    dist.all_reduce(score)
    return (score[0] / score[1]).item()


def main():
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    model = DDP(TwoTower())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    gen = torch.Generator().manual_seed(40 + rank)
    for step in range(60):
        q, d = model(*topics(24, gen))
        loss = F.cross_entropy(10 * q @ d.t(), torch.arange(24))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 29:
            r = recall_at_1(model.module, rank)
            if rank == 0:
                print(f"step {step} loss {loss.item():.3f} recall@1 {r:.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
