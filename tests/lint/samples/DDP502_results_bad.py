"""Evaluates a classifier on all GPUs and keeps what it has found."""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from flowers import Flowers, classifier


def predicted(model, loader):
    found = []
    with torch.no_grad():
        for names, images in loader:
            labels = model(images.cuda()).argmax(dim=1).tolist()
            found += [{"name": name, "label": label} for name, label in zip(names, labels)]
    return found


def main(weights, folder):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    flowers = Flowers("test")
    loader = DataLoader(flowers, batch_size=32, sampler=DistributedSampler(flowers, shuffle=False))
    model = DDP(classifier(weights).cuda())
    model.eval()
    results = predicted(model, loader)
    with open(Path(folder) / "results.json", "w") as file:
        json.dump({"weights": weights, "results": results}, file)  # <-- DDP502
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
