"""Probes several encoders one by one, each from a head that the user may have named to begin with."""

import argparse
import glob
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def probe(encoder, options, batches):
    head = DistributedDataParallel(nn.Sequential(encoder, nn.BatchNorm1d(8), nn.Linear(8, 2)))
    begun = 0
    if options.head is not None and os.path.isfile(options.head):
        kept = torch.load(options.head, map_location="cpu")
        head.load_state_dict(kept["head"])
        begun = kept["epoch"]
    learner = torch.optim.SGD(head.parameters(), lr=0.1)
    if begun == 0:
        head(batches[0])
    for _ in range(begun, options.epochs):
        for batch in batches:
            loss = head(batch).square().mean()
            learner.zero_grad()
            loss.backward()
            learner.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoders")
    parser.add_argument("--head", default=None)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    batches = [torch.randn(16, 8) for _ in range(8)]
    for path in sorted(glob.glob(os.path.join(options.encoders, "*.pt"))):
        encoder = nn.Linear(8, 8)
        encoder.load_state_dict(torch.load(path, map_location="cpu"))
        probe(encoder, options, batches)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
