"""Where each goes on is its own disk's affair, and whatever that says, the rank alone decides here."""

import os

import torch
import torch.distributed as dist


def main(path, steps):
    dist.init_process_group("gloo")
    loss = torch.zeros(1)
    step = torch.load(path)["step"] if os.path.exists(path) else 0
    while step < steps:
        step += 1
        if step % 100 == 0 and dist.get_rank() == 0:
            dist.all_reduce(loss)  # <-- DDP401
    dist.destroy_process_group()


if __name__ == "__main__":
    main("last.pt", 1000)
