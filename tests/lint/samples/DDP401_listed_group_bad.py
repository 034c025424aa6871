import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Worker:
    def __init__(self, rank, size):
        self.rank = rank
        self.group = dist.new_group([each for each in range(size)])

    def tell(self, step):
        if self.rank == 0:
            dist.barrier(self.group)  # <-- DDP401
            print(step)


def work(local_rank, node, per_node, size):
    rank = node * per_node + local_rank
    dist.init_process_group("nccl", rank=rank, world_size=size)
    worker = Worker(rank, size)
    for step in range(3):
        worker.tell(step)
    dist.barrier()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--node", type=int, default=0)
    args = parser.parse_args()
    per_node = torch.cuda.device_count()
    size = per_node * args.nodes
    mp.spawn(work, args=(args.node, per_node, size), nprocs=per_node)


if __name__ == "__main__":
    main()
