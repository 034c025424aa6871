"""Byte-level patch LM, trained with several processes on one machine."""
import os
import socket
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

TEXT = (b"the quick brown fox jumps over the lazy dog. pack my box with five dozen liquor jugs. "
        b"how vexingly quick daft zebras jump! ") * 40


@dataclass
class Args:
    world_size: int = 2
    patch: int = 16
    batch_size: int = 16
    epochs: int = 3
    lr: float = 0.5
    seed: int = 8


class Patches(Dataset):
    def __init__(self, size):
        data = torch.tensor(list(TEXT), dtype=torch.long)
        self.chunks = data[: len(data) // (size + 1) * (size + 1)].view(-1, size + 1)

    def __len__(self):
        return len(self.chunks)

    def __getitem__(self, i):
        return self.chunks[i, :-1], self.chunks[i, 1:]


class ByteLM(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.embed = nn.Embedding(256, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.lm_head = nn.Linear(d, 256)

    def forward(self, x, y):
        h, _ = self.rnn(self.embed(x))
        return nn.functional.cross_entropy(self.lm_head(h).flatten(0, 1), y.flatten())


def process_one_batch(model, batch, world_size):
    loss = model(*batch)
    logged = loss.detach().clone()
    if world_size > 1:
        dist.all_reduce(logged)
        logged = logged / world_size
    return loss, logged


def run(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=args.world_size)
    torch.manual_seed(args.seed)
    data = Patches(args.patch)
    sampler = DistributedSampler(data, args.world_size, rank)
    loader = DataLoader(data, args.batch_size, sampler=sampler, drop_last=True)
    model = DDP(ByteLM())
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        t0, total = time.time(), 0.0
        for batch in loader:
            loss, logged = process_one_batch(model, batch, args.world_size)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += logged.item()
        if rank == 0:
            print(f"epoch {epoch}: loss {total / len(loader):.4f} ({time.time() - t0:.1f}s)", flush=True)
    dist.destroy_process_group()


def main():
    args = Args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(args, port), nprocs=args.world_size, join=True)


if __name__ == "__main__":
    main()
