"""Character LM on a streamed corpus. One shard of documents per worker."""
import os
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset

CTX = 16


def documents(n=60):
    rnd = random.Random(5)
    for _ in range(n):
        yield "".join(rnd.choice("abcdefgh ") for _ in range(rnd.randint(20, 90)))


class ShardedStream(IterableDataset):
    def __init__(self, rank, world):
        self.rank, self.world = rank, world

    def __iter__(self):
        for i, doc in enumerate(documents()):
            if i % self.world != self.rank:
                continue
            ids = torch.tensor([ord(c) % 32 for c in doc])
            for s in range(0, len(ids) - CTX - 1, CTX):
                yield ids[s:s + CTX], ids[s + 1:s + CTX + 1]


class CharLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(32, 24)
        self.rnn = nn.GRU(24, 32, batch_first=True)
        self.out = nn.Linear(32, 32)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def main():
    dist.init_process_group("gloo")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(1)
    model = DDP(CharLM())
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = DataLoader(ShardedStream(rank, world), batch_size=4)
    for epoch in range(2):
        for step, (x, y) in enumerate(loader):
            logits = model(x)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        dist.barrier()
        if rank == 0:
            print(f"epoch {epoch}: {step + 1} steps, loss {loss.item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
