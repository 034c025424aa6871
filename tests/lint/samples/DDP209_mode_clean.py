import argparse

import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, DistributedSampler

from scenes import Scenes


class Data:
    def __init__(self, args, part):
        rows = Scenes(args.root, part)
        self.order = DistributedSampler(rows) if args.distributed else None
        self.loader = DataLoader(rows, args.batch, shuffle=(self.order is None), sampler=self.order)


def work(rank, ranks, args):
    dist.init_process_group("nccl", init_method=args.url, world_size=ranks, rank=rank)
    for batch in Data(args, "train").loader:
        print(batch)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="train")
    parser.add_argument("--root")
    parser.add_argument("--url", default="tcp://127.0.0.1:1234")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--distributed", action="store_true")
    args = parser.parse_args()
    if args.mode != "train":
        print("this is for training only")
        return -1
    mp.spawn(work, nprocs=args.ranks, args=(args.ranks, args))


if __name__ == "__main__":
    main()
