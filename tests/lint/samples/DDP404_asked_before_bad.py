"""Who has nothing fails where he is asked what is in it."""

import sys

import torch
import torch.distributed as dist


class Bottom(torch.nn.Module):
    def __init__(self, width, sizes=None):
        super().__init__()
        assert sizes is not None or width == sizes[-1]  # <-- DDP404
        self.layer = torch.nn.Linear(width, 1)


def main(width):
    dist.init_process_group("gloo")
    sizes = [1, 2, int(width)] if dist.get_rank() == 0 else None
    print(Bottom(int(width), sizes))
    dist.barrier()


if __name__ == "__main__":
    main(*sys.argv[1:])
