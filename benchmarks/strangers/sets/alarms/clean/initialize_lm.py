"""Language model pretraining entry point, split into initialize() and pretrain()."""
import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as LocalDDP

_ARGS = None


def get_args():
    assert _ARGS is not None, "args not initialized"
    return _ARGS


def print_rank_0(msg):
    if not dist.is_initialized() or dist.get_rank() == 0:
        print(msg, flush=True)


def _parse(extra=None):
    global _ARGS
    p = argparse.ArgumentParser()
    p.add_argument("--distributed-backend", default="gloo", choices=["nccl", "gloo"])
    p.add_argument("--distributed-timeout-minutes", type=int, default=10)
    p.add_argument("--train-iters", type=int, default=15)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=1234)
    _ARGS = p.parse_args()
    _ARGS.rank = int(os.getenv("RANK", "0"))
    _ARGS.world_size = int(os.getenv("WORLD_SIZE", "1"))


def _initialize_distributed():
    args = get_args()
    if dist.is_initialized():
        print_rank_0("torch distributed is already initialized, skipping initialization ...")
        args.rank, args.world_size = dist.get_rank(), dist.get_world_size()
    else:
        print_rank_0("> initializing torch distributed ...")
        dist.init_process_group(backend=args.distributed_backend, world_size=args.world_size, rank=args.rank,
                                timeout=timedelta(minutes=args.distributed_timeout_minutes))


def initialize():
    _parse()
    _initialize_distributed()
    torch.manual_seed(get_args().seed)


class Embedder(nn.Module):
    def __init__(self, vocab=50, dim=32):
        super().__init__()
        self.emb, self.ff, self.out = nn.Embedding(vocab, dim), nn.Linear(dim, dim), nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.out(torch.relu(self.ff(self.emb(ids))))


def pretrain(provider):
    initialize()
    args = get_args()
    model = LocalDDP(provider())
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    g = torch.Generator().manual_seed(args.seed + args.rank)
    for it in range(args.train_iters):
        ids = torch.randint(0, 49, (8, 16), generator=g)
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), (ids + 1).flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
    print_rank_0(f"iteration {it + 1} lm loss {loss.item():.4f}")


if __name__ == "__main__":
    # the cluster integration joins all workers before the training code takes over
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group("gloo")
        dist.barrier()
    pretrain(Embedder)
    dist.destroy_process_group()
