"""Masked base prediction on short amplicon reads (16S toy).

usage: torchrun --nproc-per-node 2 amplicon_reads.py [epochs] [lr]
"""
import functools
import random
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

BASES = "ACGT"
MASK = 4
PAD = -100

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
LR = float(sys.argv[2]) if len(sys.argv) > 2 else 3e-3


def make_reads(n, seed):
    rng = random.Random(seed)
    motifs = ["".join(rng.choice(BASES) for _ in range(8)) for _ in range(6)]
    reads = []
    for _ in range(n):
        reads.append("".join(rng.choice(motifs) for _ in range(rng.choice([3, 4, 5]))))
    return reads


def collate(reads, rng):
    longest = max(map(len, reads))
    inp = torch.full((len(reads), longest), MASK)
    lab = torch.full((len(reads), longest), PAD)
    for i, r in enumerate(reads):
        ids = torch.tensor([BASES.index(c) for c in r])
        inp[i, :len(r)] = ids
        for j in range(0, len(r), 8):
            k = j + rng.randrange(8)
            lab[i, k] = ids[k]
            inp[i, k] = MASK
    return inp, lab


class ReadNet(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(5, dim)
        self.conv = nn.Sequential(nn.Conv1d(dim, dim, 9, padding=4), nn.GELU(),
                                  nn.Conv1d(dim, dim, 9, padding=4), nn.GELU())
        self.head = nn.Linear(dim, 4)

    def forward(self, x):
        h = self.emb(x).transpose(1, 2)
        return self.head(self.conv(h).transpose(1, 2))


@functools.lru_cache(maxsize=None)
def per_rank_share(n_masked):
    """How many masked positions a rank has on average in this step."""
    t = torch.tensor(float(n_masked))
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()


def masked_loss(logits, lab):
    total = F.cross_entropy(logits.flatten(0, 1), lab.flatten(), ignore_index=PAD, reduction="sum")
    return total / per_rank_share(int((lab != PAD).sum()))


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=25))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    reads = make_reads(640, seed=3)[rank::world]
    rng = random.Random(100 + rank)
    net = DDP(ReadNet())
    opt = torch.optim.AdamW(net.parameters(), lr=LR)
    for epoch in range(EPOCHS):
        rng.shuffle(reads)
        seen = 0.0
        for k in range(0, len(reads), 16):
            inp, lab = collate(reads[k:k + 16], rng)
            opt.zero_grad()
            loss = masked_loss(net(inp), lab)
            loss.backward()
            opt.step()
            seen += loss.item()
        if rank == 0:
            print(f"epoch {epoch}: loss {seen / (len(reads) // 16):.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
