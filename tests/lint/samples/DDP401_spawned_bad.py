import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def evaluate(model):
    dist.barrier()
    return 1.0


def report(model, world_size=None, score=None):
    distributed = True if world_size else False
    if distributed:
        score = evaluate(model)
    print(score)


def train(rank=None, world_size=None):
    distributed = True if world_size else False
    model = torch.nn.Linear(2, 2)
    if distributed:
        dist.init_process_group("gloo", rank=rank, world_size=world_size)
        model = DDP(model)
    for _ in range(3):
        model(torch.randn(2, 2)).sum().backward()
        if not distributed:
            report(model)
            continue
        score = evaluate(model)
        if rank == 0:
            report(model, world_size, score)  # <-- DDP401


if __name__ == "__main__":
    devices = torch.cuda.device_count()
    mp.spawn(train, args=(devices,), nprocs=devices, join=True)
