import argparse
import datetime
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def make_folder(where):
    folder = Path(where) / datetime.datetime.now().strftime("%Y%m%d_%H%M%S_%f")
    folder.mkdir(parents=True)  # <-- DDP514
    return folder


def run(rank, world_size, where):
    model = torch.nn.Linear(8, 8).to(rank)
    if world_size > 1:
        dist.init_process_group("nccl", rank=int(rank), world_size=world_size)
        torch.cuda.set_device(rank)
        model = torch.nn.parallel.DistributedDataParallel(model).module
    folder = make_folder(where)
    if rank in (0, "cpu"):
        torch.save(model.state_dict(), folder / "last.pt")
    if world_size > 1:
        dist.barrier()
    model.load_state_dict(torch.load(folder / "last.pt", map_location="cpu"))
    if world_size > 1:
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=1)
    gpus = parser.parse_args().gpus
    world_size = gpus if gpus > 0 else 1
    if gpus:
        mp.spawn(run, args=(world_size, "runs"), nprocs=world_size)
    else:
        run("cpu", world_size, "runs")


if __name__ == "__main__":
    main()
