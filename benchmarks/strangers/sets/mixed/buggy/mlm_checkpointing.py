"""Masked-LM pre-training with activation checkpointing switched on from the command line."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def get_args():
    parser = argparse.ArgumentParser("mlm")
    parser.add_argument("--vocab", type=int, default=50)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--steps-log", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--no-gradient-checkpointing", dest="gradient_checkpointing", action="store_false")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mix = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        y = self.norm(x)
        x = x + self.mix(y, y, y, need_weights=False)[0]
        return x + self.mlp(x)


class Roberta(nn.Module):
    def __init__(self, vocab, dim, depth):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.lm_head = nn.Linear(dim, vocab)
        self.gradient_checkpointing = False

    def gradient_checkpointing_enable(self):
        self.gradient_checkpointing = True

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            if self.gradient_checkpointing and self.training:
                x = checkpoint(block, x, use_reentrant=True)
            else:
                x = block(x)
        return self.lm_head(x)


def main(args):
    rank = int(os.environ["RANK"])
    ids = torch.randint(1, args.vocab, (128, 10), generator=torch.Generator().manual_seed(args.seed))
    dataset = TensorDataset(ids)
    sampler = DistributedSampler(dataset, shuffle=True, seed=args.seed)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)

    torch.manual_seed(args.seed)
    model = Roberta(args.vocab, args.dim, args.depth)
    if args.gradient_checkpointing:
        model.gradient_checkpointing_enable()
    model = DistributedDataParallel(model, find_unused_parameters=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    step = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for (batch,) in loader:
            inputs = batch.clone()
            inputs[:, ::4] = 0
            logits = model(inputs)
            loss = nn.functional.cross_entropy(logits[:, ::4].flatten(0, 1), batch[:, ::4].flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step % args.steps_log == 0:
                shown = loss.detach().clone()
                dist.all_reduce(shown)
                if rank == 0:
                    print(f"step {step} loss {shown.item() / dist.get_world_size():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main(get_args())
    dist.destroy_process_group()
