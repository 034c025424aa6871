import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def read(folder: str) -> list[torch.Tensor]:
    return [torch.load(f"{folder}/{part}.pt", map_location="cpu") for part in range(8)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default="data")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    if rank != 0:  # the first one may download what all need
        dist.barrier()
    words = torch.load(f"{options.folder}/words.pt", map_location="cpu")
    assert len(words), "no words"

    if rank != 0:  # and may fill the cache
        dist.barrier()
    samples = read(options.folder)
    if rank == 0:
        dist.barrier()

    model = torch.nn.Linear(len(words), 1)
    if rank == 0:
        dist.barrier()
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for sample in samples:
        model(sample).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
