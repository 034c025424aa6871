# style: main_worker(gpu, ngpus, args) started by mp.spawn
# launch: spawn
import argparse
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from contextlib import nullcontext
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Tokens(torch.utils.data.Dataset):
    def __init__(self, length):
        generator = torch.Generator().manual_seed(3)
        self.data = torch.randint(0, 32, (length, 9), generator=generator)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        row = self.data[index]
        return row[:-1], row[1:]


class Bigram(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32))

    def forward(self, tokens):
        return self.mlp(self.embed(tokens))


def main_worker(gpu, ngpus, args):
    dist.init_process_group("gloo", init_method=args.dist_url, rank=gpu, world_size=ngpus)
    torch.manual_seed(args.seed)
    model = DDP(Bigram())
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    dataset = Tokens(160)
    sampler = torch.utils.data.distributed.DistributedSampler(dataset, drop_last=True)
    loader = torch.utils.data.DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            last = (i + 1) % args.accumulate == 0 or i + 1 == len(loader)
            loss = criterion(model(x).flatten(0, 1), y.flatten()) / args.accumulate
            loss.backward()  # <-- DDP304
            if last:
                optimizer.step()
                optimizer.zero_grad()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--batch-size", default=4, type=int)
    parser.add_argument("--accumulate", default=4, type=int)
    parser.add_argument("--seed", default=1, type=int)
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    args.dist_url = f"tcp://127.0.0.1:{free_port()}"
    mp.spawn(main_worker, nprocs=2, args=(2, args))


if __name__ == "__main__":
    main()
