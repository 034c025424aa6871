"""Who leaves within a choice leaves out what follows it."""

import sys

import torch
import torch.distributed as dist


class Meter:
    def __init__(self, reduced, name):
        self.reduced, self.name = reduced, name
        self.values = [0.0]

    def flush(self):
        if not self.reduced:
            if dist.get_rank() != 0:
                return
        values = torch.tensor(self.values)
        if self.name:
            dist.all_reduce(values)  # <-- DDP401
        print(self.name, values)


def main(reduced):
    dist.init_process_group("gloo")
    Meter(reduced == "yes", reduced).flush()


if __name__ == "__main__":
    main(sys.argv[1])
