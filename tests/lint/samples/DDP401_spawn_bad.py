import torch.distributed as dist
import torch.multiprocessing as mp


def worker(gpu, port):
    dist.init_process_group("gloo", rank=gpu, world_size=2)
    if gpu == 0:
        dist.barrier()  # <-- DDP401


if __name__ == "__main__":
    mp.spawn(worker, args=(29500,), nprocs=2)
