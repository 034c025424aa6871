"""Char-level LM with a sample-counting data sampler; can be stopped and continued.

  torchrun --standalone --nproc-per-node=2 charlm_resume.py
runs 24 steps, "is pre-empted", then continues to step 48.
"""
import argparse
import math
import os
import shutil

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset


def get_args(argv=None):
    p = argparse.ArgumentParser()
    g = p.add_argument_group("model")
    g.add_argument("--seq-length", type=int, default=32)
    g.add_argument("--hidden-size", type=int, default=48)
    g.add_argument("--num-layers", type=int, default=2)
    g.add_argument("--vocab-size", type=int, default=64)
    g = p.add_argument_group("training")
    g.add_argument("--micro-batch-size", type=int, default=4)
    g.add_argument("--grad-acc", type=int, default=2)
    g.add_argument("--train-iters", type=int, default=48)
    g.add_argument("--exit-interval", type=int, default=24)
    g.add_argument("--lr", type=float, default=2e-3)
    g.add_argument("--seed", type=int, default=1234)
    g.add_argument("--save", default="charlm_ckpt")
    return p.parse_args(argv)


class TokenBlocks(Dataset):
    def __init__(self, args, n=1024):
        g = torch.Generator().manual_seed(args.seed)
        step = torch.randint(1, 5, (n, 1), generator=g)
        start = torch.randint(0, args.vocab_size, (n, 1), generator=g)
        t = torch.arange(args.seq_length + 1)
        self.tokens = (start + step * t) % args.vocab_size

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return i, self.tokens[i]


class PretrainingSampler:
    """Sequential batches, continued from the number of samples consumed so far."""

    def __init__(self, total, consumed, micro_batch, rank, world):
        self.total, self.consumed = total, consumed
        self.micro_batch, self.rank, self.world = micro_batch, rank, world
        self.span = micro_batch * world

    def __len__(self):
        return (self.total - self.consumed) // self.span

    def __iter__(self):
        batch = []
        for idx in range(self.consumed, self.total):
            batch.append(idx)
            if len(batch) == self.span:
                lo = self.rank * self.micro_batch
                yield batch[lo:lo + self.micro_batch]
                batch = []


class TinyGPT(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.tok = nn.Embedding(a.vocab_size, a.hidden_size)
        self.pos = nn.Parameter(torch.zeros(a.seq_length, a.hidden_size))
        layer = nn.TransformerEncoderLayer(a.hidden_size, 4, 4 * a.hidden_size, 0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, a.num_layers, enable_nested_tensor=False)
        self.head = nn.Linear(a.hidden_size, a.vocab_size)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(a.seq_length), persistent=False)

    def forward(self, x):
        return self.head(self.blocks(self.tok(x) + self.pos, mask=self.mask, is_causal=True))


class Progress:
    def __init__(self, args):
        self.args = args
        self.iteration = 0
        self.consumed_samples = 0

    def advance(self):
        self.iteration += 1
        self.consumed_samples += self.args.micro_batch_size * self.args.grad_acc

    def state_dict(self):
        return {"iteration": self.iteration, "consumed_samples": self.consumed_samples}

    def load_state_dict(self, sd):
        self.iteration, self.consumed_samples = sd["iteration"], sd["consumed_samples"]


def lr_at(it, args):
    warm = 6
    if it < warm:
        return args.lr * (it + 1) / warm
    return args.lr * 0.5 * (1 + math.cos(math.pi * (it - warm) / (args.train_iters - warm)))


def save(args, model, opt, prog):
    if dist.get_rank() == 0:
        os.makedirs(args.save, exist_ok=True)
        tmp = os.path.join(args.save, "latest.tmp")
        torch.save({"model": model.module.state_dict(), "opt": opt.state_dict(), "prog": prog.state_dict()}, tmp)
        os.replace(tmp, os.path.join(args.save, "latest.pt"))
    dist.barrier()


def pretrain(args, history):
    torch.manual_seed(args.seed)
    data = TokenBlocks(args)
    model = DDP(TinyGPT(args))
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    prog = Progress(args)
    latest = os.path.join(args.save, "latest.pt")
    if os.path.exists(latest):
        blob = torch.load(latest, weights_only=True)
        model.module.load_state_dict(blob["model"])
        opt.load_state_dict(blob["opt"])
        prog.load_state_dict(blob["prog"])
    sampler = PretrainingSampler(len(data), prog.consumed_samples, args.micro_batch_size,
                                 dist.get_rank(), dist.get_world_size())
    it = iter(DataLoader(data, batch_sampler=sampler))
    begin = prog.iteration
    while prog.iteration < args.train_iters:
        for g in opt.param_groups:
            g["lr"] = lr_at(prog.iteration, args)
        total = 0.0
        for micro in range(args.grad_acc):
            idx, tok = next(it)
            history.extend(idx.tolist())
            model.require_backward_grad_sync = micro == args.grad_acc - 1
            logits = model(tok[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tok[:, 1:].flatten()) / args.grad_acc
            loss.backward()
            total += loss.item()
        opt.step()
        opt.zero_grad()
        prog.advance()
        if dist.get_rank() == 0 and prog.iteration % 8 == 0:
            print(f"iteration {prog.iteration:3d} | lm loss {total:.4f}", flush=True)
        if prog.iteration % args.exit_interval == 0:
            save(args, model, opt, prog)
            if prog.iteration - begin >= args.exit_interval:
                return prog.iteration


def main():
    args = get_args()
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        shutil.rmtree(args.save, ignore_errors=True)
    dist.barrier()
    history = []
    while (pretrain(args, history) or args.train_iters) < args.train_iters:
        pass
    n = torch.tensor([len(history)])
    dist.all_reduce(n)
    if dist.get_rank() == 0:
        print(f"trained on {n.item()} sequences in total")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
