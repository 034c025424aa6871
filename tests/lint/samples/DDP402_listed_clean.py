import os

import torch
import torch.distributed as dist


def newest(folder):
    if not os.path.exists(folder):
        return -1
    numbers = [int(name[5:]) for name in os.listdir(folder) if name.startswith("part-")]
    if len(numbers) > 0:
        return max(numbers)
    return -1


def main(last):
    dist.init_process_group("gloo")
    number = newest("out") + 1
    if dist.get_rank() == 0 and not os.path.exists("out"):
        os.makedirs("out")
    while number <= last:
        seen = torch.tensor(float(number))
        dist.all_reduce(seen)
        if dist.get_rank() == 0:
            torch.save(seen, f"out/part-{number}")
        number += 1
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(10)
