"""Each rank tests its own rooms, each in as many parts as a voxel has points at most."""

import os

import numpy as np
import torch
import torch.distributed as dist
from pieces import read_scan, voxelize
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def parts_of(path, kind):
    if kind == "rooms":
        points = np.load(path)[:, :3]
    else:
        points = read_scan(path)
    points -= points.min(0)
    order, first, count = voxelize(points, 0.04)
    return points, [order[first + part % count] for part in range(count.max())]


def test(model, paths, kind):
    model.eval()
    for path in paths:
        points, parts = parts_of(path, kind)
        for part in parts:
            rows = torch.from_numpy(points[part]).float().cuda()
            print(path, model(rows).argmax(1))


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)).cuda()
    model = DistributedDataParallel(net)
    with torch.no_grad():
        rooms = sorted(os.listdir("rooms"))
        rooms = rooms[dist.get_rank() :: dist.get_world_size()]  # <-- DDP207
        test(model, rooms, os.environ.get("KIND", "rooms"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
