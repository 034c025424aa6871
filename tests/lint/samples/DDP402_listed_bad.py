import os

import torch
import torch.distributed as dist


def is_new(folder):
    if os.path.exists(folder):  # <-- DDP402
        return False
    return True


def main(last):
    dist.init_process_group("gloo")
    fresh = is_new("out")
    if dist.get_rank() == 0 and not os.path.exists("out"):
        os.makedirs("out")
    if fresh:
        dist.all_reduce(torch.zeros(1))
    for number in range(last):
        seen = torch.tensor(float(number))
        dist.all_reduce(seen)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(10)
