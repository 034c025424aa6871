"""Who has nothing is not asked what is in it: it is enough for him that it is None."""

import sys

import torch
import torch.distributed as dist


class Bottom(torch.nn.Module):
    def __init__(self, width, sizes=None):
        super().__init__()
        assert sizes is None or width == sizes[-1], "the last size is the width"
        self.layer = torch.nn.Linear(width, 1)
        self.has_more = sizes is not None and sizes[0] > 1


def main(width):
    dist.init_process_group("gloo")
    sizes = [1, 2, int(width)] if dist.get_rank() == 0 else None
    print(Bottom(int(width), sizes).has_more)
    dist.barrier()


if __name__ == "__main__":
    main(*sys.argv[1:])
