# style: main(args), work folder made afresh, index built on rank 0
# nproc: 2
import argparse
import os
import shutil
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


def read_raw(rank):
    time.sleep(0.3 * rank)
    generator = torch.Generator().manual_seed(1)
    return torch.rand(40, 5, generator=generator)


def fresh_folder(path):
    shutil.rmtree(path, ignore_errors=True)  # <-- DDP514
    os.makedirs(path, exist_ok=True)


def build_index(raw, path):
    keep = torch.nonzero(raw.sum(dim=1) > 1.5).flatten()
    torch.save({"keep": keep}, path)


class Indexed(Dataset):
    def __init__(self, raw, path):
        self.raw = raw
        self.keep = torch.load(path)["keep"]

    def __len__(self):
        return len(self.keep)

    def __getitem__(self, i):
        row = self.raw[self.keep[i]]
        return row[:4], row[4:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", default="work")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    raw = read_raw(rank)
    index = os.path.join(args.work, "index.pt")
    fresh_folder(args.work)
    if rank == 0:
        build_index(raw, index)
    dist.barrier()
    dataset = Indexed(raw, index)
    loader = DataLoader(dataset, batch_size=4, sampler=DistributedSampler(dataset))
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.l1_loss(model(x), y).backward()
            optimizer.step()
    if rank == 0:
        torch.save(model.module.state_dict(), os.path.join(args.work, "model.pt"))
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
