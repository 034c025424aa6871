import logging
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

logger = logging.getLogger("asr")


class CorruptSample(RuntimeError):
    pass


def collate(samples):
    if any(s is None for s in samples):
        raise CorruptSample("undecodable clip")
    n = max(len(s) for s in samples)
    return torch.stack([torch.nn.functional.pad(s, (0, n - len(s))) for s in samples]).unsqueeze(-1)


class Clips:
    def __init__(self, n, rank):
        rng = random.Random(40 + rank)
        self.items = [None if rng.random() < 0.04 else torch.rand(rng.randint(4, 12)) for _ in range(n)]

    def batch(self, i, size):
        return collate(self.items[i * size:(i + 1) * size])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 16, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[1][-1]).squeeze(-1)


def all_ok(ok):
    flag = torch.tensor([1 if ok else 0])
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return bool(flag.item())


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"[{rank}] %(message)s")
    torch.manual_seed(0)
    model = DDP(Encoder())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    clips = Clips(160, rank)
    skipped = 0
    for i in range(20):
        batch, ok = None, True
        try:
            batch = clips.batch(i, 8)
        except CorruptSample as e:
            logger.warning("batch %d: %s", i, e)
            ok = False
        if not all_ok(ok):
            skipped += 1
            continue
        loss = (model(batch) - batch.mean((1, 2))).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    logger.info("skipped %d of 20, last loss %.4f", skipped, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
