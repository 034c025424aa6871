import argparse
import os

import torch
import torch.distributed as dist


def prepare(folder):
    os.makedirs(folder, exist_ok=True)


def put_down(folder, step):
    path = os.path.join(folder, "random", f"{step}.pt")
    if not os.path.exists(os.path.dirname(path)):
        os.makedirs(os.path.dirname(path))  # <-- DDP514
    if dist.get_rank() == 0:
        torch.save(torch.get_rng_state(), path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    prepare(args.out)
    for step in range(10):
        put_down(args.out, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
