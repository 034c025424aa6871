"""Post-local SGD: synchronous warm-up, then independent steps with periodic averaging.

    torchrun --nproc_per_node=2 local_sgd_words.py
"""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class NextWord(nn.Module):
    def __init__(self, vocab=60, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.net = nn.Sequential(nn.Linear(3 * dim, 64), nn.ReLU(), nn.Linear(64, vocab))

    def forward(self, context):
        return self.net(self.emb(context).flatten(1))


class Text:
    def __init__(self, rank, vocab=60):
        self.g, self.vocab = torch.Generator().manual_seed(rank), vocab

    def batch(self, n=32):
        start = torch.randint(0, self.vocab, (n, 1), generator=self.g)
        words = (start + 7 * torch.arange(4)) % self.vocab
        return words[:, :3], words[:, 3]


class PostLocalSGD:
    def __init__(self, ddp, lr, warmup, period):
        self.ddp, self.local = ddp, ddp.module
        self.warmup, self.period = warmup, period
        # no momentum buffers, so that only the weights have to be averaged
        self.opt = torch.optim.SGD(ddp.parameters(), lr=lr)

    def forward(self, step, context):
        return self.ddp(context) if step < self.warmup else self.local(context)

    @torch.no_grad()
    def average(self):
        flat = nn.utils.parameters_to_vector(self.local.parameters())
        dist.all_reduce(flat)
        nn.utils.vector_to_parameters(flat / dist.get_world_size(), self.local.parameters())

    def step(self, step, context, word):
        loss = nn.functional.cross_entropy(self.forward(step, context), word)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        if step >= self.warmup and (step + 1) % self.period == 0:
            self.average()
        return loss.item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=120)
    ap.add_argument("--warmup", type=int, default=24)
    ap.add_argument("--period", type=int, default=8)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    sgd = PostLocalSGD(DDP(NextWord()), lr=0.3, warmup=args.warmup, period=args.period)
    text = Text(rank)
    for step in range(args.steps):
        loss = sgd.step(step, *text.batch())
        if rank == 0 and step % 40 == 39:
            print(f"step {step + 1} loss {loss:.3f}", flush=True)
    if args.steps % args.period:
        sgd.average()
    if rank == 0:
        torch.save(sgd.local.state_dict(), "/dev/null")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
