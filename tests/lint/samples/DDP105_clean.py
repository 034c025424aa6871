import torch.distributed as dist
import torch.multiprocessing as mp

WORLD_SIZE = 8


def worker(rank):
    dist.init_process_group("gloo", rank=rank, world_size=WORLD_SIZE)


def worker_of_a_node(local_rank, node):
    rank = node * 4 + local_rank
    dist.init_process_group("gloo", rank=rank, world_size=WORLD_SIZE)


def start_node(node):
    mp.spawn(worker_of_a_node, args=(node,), nprocs=4)


if __name__ == "__main__":
    mp.spawn(worker, nprocs=WORLD_SIZE)
