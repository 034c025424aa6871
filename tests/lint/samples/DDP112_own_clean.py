import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import Dataset


class Noisy(Dataset):
    def __init__(self, samples):
        self.samples = samples
        self.local_rank = dist.get_rank()

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index].to(self.local_rank)


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)
    return parser.parse_args()


def work(rank, args):
    args.local_rank = rank
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group(
        "nccl",
        init_method="tcp://localhost:29511",  # <- DDP104
        rank=rank,
        world_size=2,
    )
    print(args, len(Noisy(torch.randn(64, 8))))


if __name__ == "__main__":
    mp.spawn(work, args=(options(),), nprocs=2)
