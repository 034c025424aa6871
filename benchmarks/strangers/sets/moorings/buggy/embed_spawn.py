"""Word vectors by data-parallel skip-gram; the launcher collects the vectors for the nearest-neighbour table."""
import argparse
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

VOCAB = 600


def find_free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


class SkipGram(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.center = nn.Embedding(VOCAB, dim)
        self.context = nn.Embedding(VOCAB, dim)

    def forward(self, c, o, neg):
        v = self.center(c)
        pos = (v * self.context(o)).sum(-1)
        bad = torch.bmm(self.context(neg), v.unsqueeze(2)).squeeze(2)
        return -(nn.functional.logsigmoid(pos).mean() + nn.functional.logsigmoid(-bad).mean())


def pairs(n, gen):
    c = torch.randint(0, VOCAB, (n,), generator=gen)
    o = (c + torch.randint(1, 4, (n,), generator=gen)) % VOCAB
    return c, o, torch.randint(0, VOCAB, (n, 5), generator=gen)


def train(rank, world, args):
    torch.manual_seed(0)
    model = DDP(SkipGram(args.dim))
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    gen = torch.Generator().manual_seed(50 + rank)
    for step in range(args.steps):
        loss = model(*pairs(256, gen))
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.module.center.weight.detach(), loss.item()


def worker(rank, world, port, args, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    vectors, loss = train(rank, world, args)
    share = range(rank, VOCAB, world)
    results.put({word: vectors[word].tolist() for word in share})
    print(f"worker {rank} finished, loss {loss:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def neighbours(table, word):
    v = torch.tensor(table[word])
    scores = {w: torch.dot(v, torch.tensor(u)).item() for w, u in table.items() if w != word}
    return sorted(scores, key=scores.get, reverse=True)[:4]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dim", type=int, default=64)
    ap.add_argument("--steps", type=int, default=40)
    ap.add_argument("--workers", type=int, default=2)
    args = ap.parse_args()
    results = mp.get_context("spawn").Queue()
    mp.spawn(worker, nprocs=args.workers, args=(args.workers, find_free_port(), args, results), join=True)
    table = {}
    for _ in range(args.workers):
        table.update(results.get())
    for word in (10, 200):
        print(word, neighbours(table, word))


if __name__ == "__main__":
    main()
