"""What is made where `cards != 1` has ended the process is made by one process alone."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def prepared(rows, scores, cards, place="rows.pt"):
    if cards != 1:
        print("prepare the rows with one card")
        sys.exit()
    kept = [row for row, score in zip(rows, scores) if score.item() < 3]
    if len(kept) > 0:
        torch.save(kept, place)
    else:
        sys.exit()


def run(cards, rows):
    rank = 0
    if cards > 1:
        rank = int(os.environ["LOCAL_RANK"])
        dist.init_process_group("gloo")
    if not os.path.exists("rows.pt"):
        scores = torch.randn(len(rows), generator=torch.Generator().manual_seed(rank))
        prepared(rows, scores, cards)
    rows = torch.load("rows.pt", map_location="cpu")[rank::cards]
    model = nn.Linear(1, 1)
    if cards > 1:
        model = DistributedDataParallel(model)
    for row in rows[:10]:
        model(row).sum().backward()
    if cards > 1:
        dist.barrier()


if __name__ == "__main__":
    run(int(sys.argv[1]), [torch.ones(1)] * 8)
