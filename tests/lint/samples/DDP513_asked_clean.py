"""Rank 0 asks for the note, and hands it to the others."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Progress:
    first = 0


class Notes:
    def read(self):
        note = [None]
        if dist.get_rank() == 0 and os.path.isfile("notes/0.pt"):
            note = [torch.load("notes/0.pt", weights_only=True)]
        dist.broadcast_object_list(note, src=0)
        return note[0]

    def before(self, progress):
        note = self.read()
        if note is not None:
            progress.first = note["round"]


class Clock:
    def before(self, progress):
        print("begins at", progress.first)


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(4, 1))
    progress = Progress()
    for helper in [Notes(), Clock()]:
        getattr(helper, "before")(progress)  # noqa: B009
    for _ in range(progress.first, 10):
        model(torch.randn(2, 4)).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
