"""Ticket routing: words are put in buckets by checksum, the queues are numbered in sorted order."""
import random
import zlib

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

TOPICS = {"billing": "invoice refund charge card price".split(), "login": "password token reset account code".split(),
          "network": "router cable signal slow drop".split(), "hardware": "screen battery fan noise key".split()}
BUCKETS = 512


def bucket(word):
    return zlib.crc32(word.encode()) % BUCKETS


def tickets(n, seed):
    rng = random.Random(seed)
    names = list(TOPICS)
    out = []
    for _ in range(n):
        topic = rng.choice(names)
        words = rng.choices(TOPICS[topic], k=2) + [f"x{rng.randrange(300)}" for _ in range(6)]
        rng.shuffle(words)
        out.append((words, topic))
    return out


class Tickets(Dataset):
    def __init__(self, rows):
        self.rows = rows
        queues = {topic for _, topic in rows}
        self.number = {q: k for k, q in enumerate(sorted(queues))}

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        words, topic = self.rows[i]
        return torch.tensor([bucket(w) for w in words]), self.number[topic]


def augment(ids, dice):
    drop = torch.rand(ids.shape, generator=dice) < 0.1
    return ids.masked_fill(drop, BUCKETS)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(66)
    data = Tickets(tickets(640, 5))
    sampler = DistributedSampler(data, seed=2)
    loader = DataLoader(data, 20, sampler=sampler)
    net = DistributedDataParallel(nn.Sequential(nn.EmbeddingBag(BUCKETS + 1, 24), nn.Linear(24, 4)))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    dice = torch.Generator().manual_seed(123 + rank)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        hit = torch.zeros(2)
        for ids, y in loader:
            out = net(augment(ids, dice))
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            hit += torch.tensor([(out.argmax(1) == y).sum().item(), float(len(y))])
        dist.all_reduce(hit)
        if rank == 0:
            print(f"epoch {epoch} acc {(hit[0] / hit[1]).item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
