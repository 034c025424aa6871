"""Answer retrieval: a small query tower is trained against a fixed table of answer vectors."""
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

ANSWERS, DIM, WORDS = 120_000, 96, 5_000
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
BATCH, NEGATIVES = 24, 31


def answer_table():
    """Stands in for the vectors of the frozen document model."""
    g = torch.Generator().manual_seed(0)
    return nn.functional.normalize(torch.randn(ANSWERS, DIM, generator=g), dim=1)


class QueryTower(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table)
        self.words = nn.EmbeddingBag(WORDS, DIM)
        self.mix = nn.Sequential(nn.Linear(DIM, DIM), nn.GELU(), nn.Linear(DIM, DIM))

    def forward(self, words, candidates):
        q = nn.functional.normalize(self.mix(self.words(words)), dim=1)
        return torch.einsum("bd,bkd->bk", q, self.table[candidates]) * 20


def questions(rank, step):
    g = torch.Generator().manual_seed(rank * 1_000_003 + step)
    answer = torch.randint(0, 500, (BATCH, 1), generator=g)
    words = (answer * 9 + torch.randint(0, 9, (BATCH, 6), generator=g)) % WORDS
    wrong = torch.randint(0, ANSWERS, (BATCH, NEGATIVES), generator=g)
    return words, torch.cat([answer, wrong], dim=1)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    tower = DDP(QueryTower(answer_table()), broadcast_buffers=False)
    opt = torch.optim.Adam(tower.parameters(), lr=3e-3)
    gold = torch.zeros(BATCH, dtype=torch.long)
    begin = time.perf_counter()
    for step in range(STEPS):
        words, candidates = questions(rank, step)
        score = tower(words, candidates)
        loss = nn.functional.cross_entropy(score, gold)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 10 == 9:
            rate = (step + 1) / (time.perf_counter() - begin)
            print(f"step {step + 1} loss {loss.item():.3f} {rate:.1f} steps/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
