import argparse
import glob
import logging
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, RandomSampler


class Chunks(Dataset):
    def __init__(self, data, length):
        self.data = data
        self.length = length

    def __len__(self):
        return len(self.data) // self.length

    def __getitem__(self, index):
        return self.data[index * self.length : (index + 1) * self.length]


class Mixture(Dataset):
    def __init__(self, parts):
        self.parts = parts
        self.names = list(parts)

    def __len__(self):
        return sum(len(part) for part in self.parts.values())

    def __getitem__(self, index):
        part = self.parts[self.names[index % len(self.names)]]
        return part[index % len(part)]


def read(folder):
    files = sorted(glob.glob(os.path.join(folder, "*.pt")))
    found = []
    for name in files:
        try:
            found.append(torch.load(name, map_location="cpu"))
        except OSError:
            logging.warning("cannot read %s", name)
    return torch.cat(found) if found else None


def load(folders):
    parts = {}
    for folder in folders:
        data = read(folder)
        if data is not None:
            parts[folder] = Chunks(data, 64)
    return Mixture(parts)


def train(model, optimizer, args):
    data = load(args.folders)
    sampler = RandomSampler(data)  # <-- DDP202
    loader = DataLoader(data, sampler=sampler, batch_size=8, drop_last=True)
    step = 0
    while step < args.steps:
        for batch in loader:
            step += 1
            optimizer.zero_grad()
            model(batch.cuda()).mean().backward()
            optimizer.step()
            if step >= args.steps:
                break


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folders", nargs="+", default=[])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = DistributedDataParallel(nn.Linear(64, 1).cuda(), device_ids=[local_rank])
    train(model, torch.optim.AdamW(model.parameters(), lr=1e-4), args)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
