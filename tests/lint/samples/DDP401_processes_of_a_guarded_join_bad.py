import argparse
import multiprocessing as mp
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def init_distributed(rank, world_size, port=37123):
    if dist.is_available() and dist.is_initialized():
        return dist.get_world_size(), dist.get_rank()
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", str(port))
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    return world_size, rank


def process_main(number, devices, batches):
    os.environ["CUDA_VISIBLE_DEVICES"] = devices[number].split(":")[-1]
    world_size, rank = init_distributed(number, len(devices))
    model = DistributedDataParallel(torch.nn.Linear(16, 2).cuda())
    optimizer = torch.optim.AdamW(model.parameters())
    for images, labels in batches:
        loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        dist.barrier()  # <-- DDP401
        print(f"trained on {world_size} devices")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", nargs="+", default=["cuda:0"])
    args = parser.parse_args()
    mp.set_start_method("spawn")
    for number in range(len(args.devices)):
        mp.Process(target=process_main, args=(number, args.devices, [])).start()
