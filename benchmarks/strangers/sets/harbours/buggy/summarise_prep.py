"""Tokenises a corpus once (kept in a cache folder) and trains a bag-of-words title model."""
import argparse
import contextlib
import hashlib
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


@contextlib.contextmanager
def main_process_first(rank):
    if rank != 0:
        dist.barrier()
    yield
    if rank == 0:
        dist.barrier()


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--cache_dir", default="prep_cache")
    p.add_argument("--max_len", type=int, default=24)
    p.add_argument("--lowercase", type=int, default=1)
    p.add_argument("--epochs", type=int, default=2)
    args = p.parse_args()
    args.local_rank = int(os.environ.get("LOCAL_RANK", 0))
    return args


def fingerprint(args):
    settings = ",".join(f"{k}={v}" for k, v in sorted(vars(args).items()))
    return hashlib.md5(settings.encode()).hexdigest()[:12]


def tokenise(line, max_len):
    time.sleep(0.002)
    ids = [int(hashlib.md5(w.encode()).hexdigest(), 16) % 199 + 1 for w in line.lower().split()][:max_len]
    return ids + [0] * (max_len - len(ids))


def prepare(lines, args):
    path = os.path.join(args.cache_dir, f"tokens-{fingerprint(args)}.pt")
    if os.path.exists(path):
        return torch.load(path)
    os.makedirs(args.cache_dir, exist_ok=True)
    table = torch.tensor([tokenise(line, args.max_len) for line in lines])
    torch.save(table, path)
    return table


def corpus(n=600):
    words = ["harbour", "election", "storm", "museum", "engine", "orchard", "bridge", "market", "violin", "glacier"]
    return [" ".join(words[(i * k + k * k) % 10] for k in range(1, 14)) for i in range(n)]


def main():
    args = parse_args()
    rank, world = dist.get_rank(), dist.get_world_size()
    begin = time.time()
    with main_process_first(rank):
        table = prepare(corpus(), args)
    print(f"rank {rank}: data ready after {time.time() - begin:.2f} s", flush=True)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.EmbeddingBag(200, 32, padding_idx=0), nn.Linear(32, 200)))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    mine = table[rank::world]
    for epoch in range(args.epochs):
        for batch in mine.split(50):
            loss = nn.functional.cross_entropy(model(batch[:, 1:]), batch[:, 0])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
