import argparse

import torch
from hosts import join
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    options = parser.parse_args()
    device = join(options.local_rank)
    net = DistributedDataParallel(torch.nn.Linear(4, 4).to(device), device_ids=[device])
    print(net)


if __name__ == "__main__":
    main()
