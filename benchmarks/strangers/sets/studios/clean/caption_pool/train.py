"""Caption language model, token-limited batches.  torchrun --nproc-per-node 2 train.py"""
import random
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

from batching import TokenPool
from hooks import LossLine, Preview
from text import PAD, VOCAB, captions, encode, pad_batch


class CaptionLM(nn.Module):
    def __init__(self, n_tokens, dim=48):
        super().__init__()
        self.tok = nn.Embedding(n_tokens, dim, padding_idx=PAD)
        self.rnn = nn.LSTM(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, n_tokens)

    def forward(self, ids):
        return self.out(self.rnn(self.tok(ids))[0])


class Run:
    def __init__(self, epochs, limit):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.epochs, self.epoch = epochs, 0
        self.sequences = [encode(c) for c in captions(360, seed=6)]
        self.pool = TokenPool([len(s) for s in self.sequences], limit, self.rank, self.world)
        self.ddp = DistributedDataParallel(CaptionLM(len(VOCAB) + 3))
        self.opt = torch.optim.Adam(self.ddp.parameters(), lr=4e-3)
        self.losses = []
        self.hooks = [LossLine(), Preview()] if self.rank == 0 else []

    def step(self, rows):
        ids = pad_batch([self.sequences[i] for i in rows])
        logits = self.ddp(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=PAD)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.losses.append(loss.item())

    def call(self, name):
        for hook in self.hooks:
            getattr(hook, name)(self)

    def fit(self):
        for self.epoch in range(self.epochs):
            self.call("before_epoch")
            for rows in self.pool:
                self.step(rows)
            self.call("after_epoch")


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    random.seed(1234)
    torch.manual_seed(1234)
    Run(epochs=6, limit=130).fit()
    dist.barrier()
    dist.destroy_process_group()
