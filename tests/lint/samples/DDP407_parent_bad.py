import argparse
import os
import pickle

import torch
import torch.distributed as dist
from torch.multiprocessing import Process
from torch.nn.parallel import DistributedDataParallel as DDP


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="run")
    parser.add_argument("--gpus", type=int, default=2)
    opt = parser.parse_args()
    opt.folder = os.path.join("results", opt.name)
    return opt


def train(opt):
    if opt.rank == 0:
        os.makedirs(opt.folder, exist_ok=True)
    with open(os.path.join(opt.folder, f"options_{opt.rank}.pkl"), "wb") as file:  # <-- DDP407
        pickle.dump(opt, file)
    net = DDP(torch.nn.Linear(8, 8).to(opt.rank), device_ids=[opt.rank])
    optimizer = torch.optim.Adam(net.parameters())
    generator = torch.Generator().manual_seed(opt.rank)
    for _ in range(100):
        optimizer.zero_grad()
        net(torch.randn(4, 8, generator=generator).to(opt.rank)).sum().backward()
        optimizer.step()


def start(rank, size, opt):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "6020"  # <- DDP104
    opt.rank = rank
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=size)
    train(opt)
    dist.destroy_process_group()


if __name__ == "__main__":
    opt = options()
    processes = [Process(target=start, args=(rank, opt.gpus, opt)) for rank in range(opt.gpus)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
