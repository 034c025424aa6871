"""Weather over a grid of processes: borders are exchanged along lines and along columns."""

import os

import torch
import torch.distributed as dist

WIDE = int(os.environ.get("GRID_WIDE", "2"))


def line_of(me, wide):
    line = me // wide
    return [line * wide + step for step in range(wide)]


def open_groups(me, wide):
    along = dist.new_group(line_of(me, wide))  # <-- DDP408
    high = dist.get_world_size() // wide
    down = dist.new_group(sorted({k * wide + me % wide for k in range(high)}))  # <-- DDP408
    return along, down


def smooth(field, along, down):
    for group in (along, down):
        dist.all_reduce(field, group=group)
    return field / WIDE


def main():
    dist.init_process_group("gloo")
    groups = open_groups(dist.get_rank(), WIDE)
    smooth(torch.randn(64, 64), *groups)
    dist.destroy_process_group()


main()
