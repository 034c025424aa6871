import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from data import build_loader, make_corpus


class BagClassifier(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, 2))

    def forward(self, ids):
        mask = (ids != 0).unsqueeze(-1).float()
        pooled = (self.emb(ids) * mask).sum(1) / mask.sum(1).clamp(min=1)
        return self.mlp(pooled)


def train_epoch(model, loader, optimizer, rank, epoch, log_every):
    model.train()
    total, steps = 0.0, 0
    for step, (ids, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        steps += 1
        if rank == 0 and step % log_every == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
    return total / max(steps, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--max-len", type=int, default=24)
    parser.add_argument("--vocab", type=int, default=200)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--out", default="tagger.pt")
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)

    corpus = make_corpus(400, args.vocab)
    loader = build_loader(corpus, rank, world_size, args.batch_size, args.max_len)
    model = DDP(BagClassifier(args.vocab, 32))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        mean_loss = train_epoch(model, loader, optimizer, rank, epoch, log_every=4)
        dist.barrier()
        if rank == 0:
            torch.save(model.module.state_dict(), args.out)
            print(f"epoch {epoch} done, mean loss {mean_loss:.4f}", flush=True)

    if rank == 0:
        os.remove(args.out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
