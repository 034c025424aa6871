import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from data_utils import LABELS, load_and_cache_examples


class Tagger(nn.Module):
    def __init__(self, vocab_size=8, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, dim)
        self.enc = nn.TransformerEncoderLayer(dim, 4, dim * 2, batch_first=True, dropout=0.1)
        self.cls = nn.Linear(dim, len(LABELS))

    def forward(self, ids):
        return self.cls(self.enc(self.emb(ids)))


def train(args, train_dataset, model):
    sampler = DistributedSampler(train_dataset)
    loader = DataLoader(train_dataset, sampler=sampler, batch_size=args.batch_size)
    model = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    tr_loss, steps = 0.0, 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for ids, labels in loader:
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            tr_loss += loss.item()
            steps += 1
    return steps, tr_loss / steps


def evaluate(args, model):
    dataset = load_and_cache_examples(args, evaluate=True)
    loader = DataLoader(dataset, batch_size=args.batch_size)
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for ids, labels in loader:
            pred = model(ids).argmax(-1)
            correct += (pred == labels).sum().item()
            total += labels.numel()
    return {"acc": correct / total}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", default="ner_data")
    parser.add_argument("--overwrite_cache", action="store_true")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=42)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    args.rank = dist.get_rank()
    torch.manual_seed(args.seed)
    os.makedirs(args.data_dir, exist_ok=True)

    model = Tagger()
    train_dataset = load_and_cache_examples(args)
    steps, loss = train(args, train_dataset, model)
    if args.rank == 0:
        print(f"global_step = {steps}, average loss = {loss:.4f}", flush=True)

    results = [None]
    if args.rank == 0:
        results = [evaluate(args, model)]
    dist.broadcast_object_list(results, src=0)
    print(f"[rank {args.rank}] eval results: {results[0]}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
