import argparse

import torch.distributed as dist
from torch import nn


class Net(nn.Module):
    def __init__(self, data):
        super().__init__()
        self.body = nn.Linear(2, len(data))

    def forward(self, x):
        return self.body(x)

    def restore(self, path):
        print(path)


def restored(model):
    model.restore("last.pt")


NETS = {"net": Net}


def main(data):
    parser = argparse.ArgumentParser()
    parser.add_argument("--launcher", default="none")
    args = parser.parse_args()
    if args.launcher == "none":
        many = False
    else:
        dist.init_process_group("nccl")
        many = True
    model = NETS[data.kind](data)
    if many:
        model = nn.parallel.DistributedDataParallel(model)
    restored(model.module if many else model)


if __name__ == "__main__":
    from somewhere import data

    main(data)
