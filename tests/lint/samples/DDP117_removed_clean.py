import argparse

import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank, args):
    dist.init_process_group("gloo", rank=rank, world_size=2)
    print(rank, args.size)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.set_defaults(entry=lambda args: parser.print_help())
    parser.add_argument("--size", type=lambda text: int(text), default=3)
    args = parser.parse_args()
    args.scale = lambda step: 1 / (1 + step)
    del args.scale, args.entry
    mp.spawn(worker, args=(args,), nprocs=2)
