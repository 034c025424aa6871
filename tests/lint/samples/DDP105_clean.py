import torch.distributed as dist
import torch.multiprocessing as mp

WORLD_SIZE = 8


def worker(rank):
    dist.init_process_group("gloo", rank=rank, world_size=WORLD_SIZE)


if __name__ == "__main__":
    mp.spawn(worker, nprocs=WORLD_SIZE)
