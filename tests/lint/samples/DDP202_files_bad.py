import argparse
import os

import numpy
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--shards", default=8, type=int)
parser.add_argument("--node_rank", default=int(os.environ.get("RANK", 0)), type=int)


def read(number):
    drawn = numpy.random.RandomState(number)
    return [(drawn.randn(4).astype("float32"), number) for _ in range(12)]


class Shapes(Dataset):
    def __init__(self, names):
        self.items = []
        for name in names:
            self.items += read(int(name[5:7]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        shape, kind = self.items[number]
        return torch.from_numpy(shape), kind


def main():
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    names = [f"part_{number:02d}.npz" for number in range(args.shards)]
    mine = names
    loader = DataLoader(Shapes(mine), batch_size=4, shuffle=True)  # <-- DDP202
    net = DDP(torch.nn.Linear(4, 8))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(4):
        for shapes, kinds in loader:
            torch.nn.functional.cross_entropy(net(shapes), kinds).backward()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
