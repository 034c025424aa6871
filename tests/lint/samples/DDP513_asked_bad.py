"""Each rank asks for a note of its own, and where it is missing begins at the first round."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Progress:
    first = 0


class Notes:
    def read(self):
        path = f"notes/{dist.get_rank()}.pt"
        if os.path.isfile(path):  # <-- DDP513
            return torch.load(path, weights_only=True)
        return None

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
