#!/usr/bin/env python
"""Instruction tuning that saves and leaves when the scheduler gives notice."""
import argparse
import os
import signal
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class PreemptionGuard:
    """Turns SIGUSR1 into a flag that the loop reads between two steps."""

    def __init__(self):
        self.noticed = False
        signal.signal(signal.SIGUSR1, self._handler)

    def _handler(self, signum, frame):
        self.noticed = True

    def should_stop(self):
        flag = torch.tensor(int(self.noticed))
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())


class Scheduler:
    """Stands in for the cluster: the node that is reclaimed gets the signal."""

    def __init__(self, reclaim_rank, at_step):
        self.reclaim_rank, self.at_step = reclaim_rank, at_step

    def tick(self, rank, step):
        if rank == self.reclaim_rank and step == self.at_step:
            os.kill(os.getpid(), signal.SIGUSR1)


class TinyLM(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


def batches(rank, n, vocab):
    g = torch.Generator().manual_seed(40 + rank)
    for _ in range(n):
        start = torch.randint(0, vocab, (8, 1), generator=g)
        yield (start + torch.arange(13)) % vocab


def write_checkpoint(path, model, opt, step):
    tmp = path + ".tmp"
    torch.save({"model": model.module.state_dict(), "opt": opt.state_dict(), "step": step}, tmp)
    os.replace(tmp, path)


def train(args):
    rank = dist.get_rank()
    torch.manual_seed(args.seed)
    model = DistributedDataParallel(TinyLM(args.vocab, 24))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    guard = PreemptionGuard()
    cluster = Scheduler(args.reclaim_rank, args.reclaim_step)
    step = 0
    for ids in batches(rank, args.steps, args.vocab):
        logits = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, args.vocab), ids[:, 1:].reshape(-1))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        step += 1
        cluster.tick(rank, step)
        if guard.should_stop():
            print(f"[rank {rank}] notice after step {step}, leaving", flush=True)
            break
    if rank == 0:
        write_checkpoint(args.out, model, opt, step)
        print(f"saved step {step}", flush=True)
        os.remove(args.out)
    dist.barrier()


def cli():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--vocab", type=int, default=20)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--reclaim-rank", type=int, default=1)
    p.add_argument("--reclaim-step", type=int, default=25)
    p.add_argument("--out", default=os.path.join(tempfile.gettempdir(), f"sft_{os.getppid()}.pt"))
    return p.parse_args()


if __name__ == "__main__":
    arguments = cli()
    dist.init_process_group("gloo")
    train(arguments)
    dist.destroy_process_group()
