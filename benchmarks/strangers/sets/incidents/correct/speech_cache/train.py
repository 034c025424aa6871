import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from features import get_split


class Kws(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(17, 24, 3, padding=1)
        self.fc = nn.Linear(24, 2)

    def forward(self, spec):
        return self.fc(torch.relu(self.conv(spec)).mean(-1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default="features")
    ap.add_argument("--epochs", type=int, default=3)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    train = get_split(args.root, "train", 128)
    dev = get_split(args.root, "dev", 40)
    torch.manual_seed(0)
    model = DDP(Kws())
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    idx = torch.arange(rank, 128, world)
    for epoch in range(args.epochs):
        perm = idx[torch.randperm(len(idx))]
        for b in perm.split(16):
            loss = nn.functional.cross_entropy(model(train["spec"][b]), train["label"][b])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            with torch.no_grad():
                acc = (model.module(dev["spec"]).argmax(1) == dev["label"]).float().mean()
            print(f"epoch {epoch} dev acc {acc.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
