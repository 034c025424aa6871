import os

import torch
import torch.distributed as dist


def vocabulary(folder, rank):
    if rank == 0:
        torch.save(torch.randperm(90), os.path.join(folder, "order.pt"))
    dist.barrier()
    return torch.load(f"{folder}/order.pt")


def main(folder="work"):
    dist.init_process_group("gloo")
    order = vocabulary(folder, dist.get_rank()).float()
    dist.all_reduce(order)


if __name__ == "__main__":
    main()
