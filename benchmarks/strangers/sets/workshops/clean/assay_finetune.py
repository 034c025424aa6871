"""Finetunes a small encoder on assay labels (multi label, many missing). Best epoch by validation AUC-like rank score."""
import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

ASSAYS, TOKENS, LENGTH = 8, 32, 48


class Encoder(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embed = nn.Embedding(TOKENS, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, ASSAYS)

    def forward(self, ids):
        return self.head(self.body(self.embed(ids)).mean(1))


def molecules(n, seed):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(TOKENS, (n, LENGTH), generator=g)
    counts = F.one_hot(ids, TOKENS).float().sum(1)
    w = torch.randn(TOKENS, ASSAYS, generator=torch.Generator().manual_seed(0))
    y = ((counts - LENGTH / TOKENS) @ w > 0).float()
    y[torch.rand(n, ASSAYS, generator=g) < 0.3] = float("nan")
    return TensorDataset(ids, y)


def masked_bce(logits, y, reduction="mean"):
    have = ~torch.isnan(y)
    return F.binary_cross_entropy_with_logits(logits[have], y[have], reduction=reduction)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss, right, have = 0.0, 0, 0
    for ids, y in loader:
        logits = model(ids)
        mask = ~torch.isnan(y)
        loss += masked_bce(logits, y, "sum").item()
        right += ((logits > 0).float() == y)[mask].sum().item()
        have += mask.sum().item()
    totals = torch.tensor([loss, right, have], dtype=torch.float64)
    dist.all_reduce(totals)
    return (totals[0] / totals[2]).item(), (totals[1] / totals[2]).item()


def main(args):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)
    model = DistributedDataParallel(Encoder(args.width, args.layers))
    train_set, valid_set = molecules(args.train, 1), molecules(args.valid, 2)
    train_sampler = DistributedSampler(train_set, world, rank, shuffle=True)
    train_loader = DataLoader(train_set, args.batch, sampler=train_sampler)
    valid_loader = DataLoader(Subset(valid_set, range(rank, len(valid_set), world)), 2 * args.batch)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    best = (float("inf"), -1)
    for epoch in range(args.epochs):
        model.train()
        train_sampler.set_epoch(epoch)
        for ids, y in train_loader:
            loss = masked_bce(model(ids), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        started = time.perf_counter()
        vloss, acc = evaluate(model.module, valid_loader)
        took = time.perf_counter() - started
        best = min(best, (vloss, epoch))
        if rank == 0:
            print(f"epoch {epoch} valid loss {vloss:.4f} acc {acc:.3f} ({took:.1f} s)", flush=True)
    if rank == 0:
        print("best epoch", best[1])
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--train", type=int, default=256)
    p.add_argument("--valid", type=int, default=16384)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--width", type=int, default=48)
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=5)
    main(p.parse_args())
