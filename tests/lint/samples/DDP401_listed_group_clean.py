import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Worker:
    def __init__(self, rank, size):
        self.rank = rank
        self.every = dist.new_group([each for each in range(size)])
        self.half = dist.new_group([each for each in range(size // 2)])

    def tell(self, step):
        dist.barrier(self.every)
        if self.rank == 0:
            print(step)

    def tell_half(self, size):
        if self.rank < size // 2:
            dist.barrier(self.half)


def work(local_rank, node, per_node, size):
    rank = node * per_node + local_rank
    dist.init_process_group("nccl", rank=rank, world_size=size)
    worker = Worker(rank, size)
    for step in range(3):
        worker.tell(step)
    worker.tell_half(size)
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
