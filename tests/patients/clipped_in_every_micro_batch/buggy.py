# style: LSTM language model, gradient accumulation and clipping, functions
import math
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils import clip_grad_norm_

ACCUMULATE = 3
MAX_NORM = 0.25


class LanguageModel(nn.Module):
    def __init__(self, vocabulary=20, width=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.decoder = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        hidden, _ = self.lstm(self.embedding(tokens))
        return self.decoder(hidden)


def batches(rank, count):
    generator = torch.Generator().manual_seed(100 + rank)
    for _ in range(count):
        yield torch.randint(0, 20, (4, 7), generator=generator)


def train_epoch(model, optimizer, rank, micro_batches=12):
    total = 0.0
    optimizer.zero_grad()
    for index, tokens in enumerate(batches(rank, micro_batches), start=1):
        boundary = index % ACCUMULATE == 0
        with nullcontext() if boundary else model.no_sync():
            logits = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            (loss / ACCUMULATE).backward()
        total += loss.item()
        clip_grad_norm_(model.parameters(), MAX_NORM)  # <-- DDP306
        if boundary:
            optimizer.step()
            optimizer.zero_grad()
    return math.exp(total / micro_batches)


def main():
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(LanguageModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(2):
        perplexity = train_epoch(model, optimizer, rank)
        if rank == 0:
            print(f"| epoch {epoch} | perplexity {perplexity:8.2f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
