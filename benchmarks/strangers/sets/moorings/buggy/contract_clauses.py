"""Clause tagging in contracts. The largest batch that fits into the budget is found before training starts."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

TAGS = 6


class Contracts(Dataset):
    def __init__(self, n=240):
        g = torch.Generator().manual_seed(21)
        self.length = torch.randint(6, 30, (n,), generator=g)
        self.length[17] = 120
        self.text = [torch.randint(1, 90, (int(k),), generator=g) for k in self.length]
        self.tags = [t % TAGS for t in self.text]

    def __len__(self):
        return len(self.text)

    def __getitem__(self, i):
        return self.text[i], self.tags[i]


def pad(batch):
    text, tags = zip(*batch)
    return (nn.utils.rnn.pad_sequence(text, True), nn.utils.rnn.pad_sequence(tags, True, padding_value=-100))


class Tagger(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(90, dim, padding_idx=0)
        self.rnn = nn.LSTM(dim, dim // 2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(dim, TAGS)

    def forward(self, text):
        return self.out(self.rnn(self.embed(text))[0])


def activation_kib(batch_size, length, dim=32):
    return 4 * batch_size * length * (3 * dim + TAGS) / 1024


def find_batch_size(indices, data, budget_kib, start=2):
    """Doubles the batch size until the longest documents no longer fit."""
    longest = max(int(data.length[i]) for i in indices)
    size = start
    while size * 2 <= 64 and activation_kib(size * 2, longest) < budget_kib:
        size *= 2
    return size


class Run:
    def __init__(self, args):
        self.args, self.rank = args, int(os.environ["RANK"])
        self.data = Contracts()
        self.sampler = DistributedSampler(self.data, shuffle=False)
        self.batch_size = find_batch_size(list(self.sampler), self.data, args.budget_kib)
        print(f"[{self.rank}] batch size {self.batch_size}", flush=True)
        self.loader = DataLoader(self.data, self.batch_size, sampler=self.sampler, collate_fn=pad)
        torch.manual_seed(0)
        self.model = DDP(Tagger())
        self.opt = torch.optim.Adam(self.model.parameters(), lr=args.lr)

    def epoch(self, number):
        total = steps = 0
        for text, tags in self.loader:
            logits = self.model(text)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tags.flatten(), ignore_index=-100)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item()
            steps += 1
        dist.barrier()
        if self.rank == 0:
            print(f"epoch {number} loss {total / steps:.3f}", flush=True)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--budget-kib", type=float, default=400)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--lr", type=float, default=1e-2)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    run = Run(args)
    for k in range(args.epochs):
        run.epoch(k)
    del run
    dist.destroy_process_group()
