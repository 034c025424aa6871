import os

import numpy
import torch
import torch.distributed as dist
from torch.hub import download_url_to_file
from torch.nn.parallel import DistributedDataParallel

URL = "https://example.org/numbers.npy"


def main():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    if dist.get_rank() == 0:
        download_url_to_file(URL, "numbers.npy")
    dist.barrier()
    numbers = numpy.load("numbers.npy")
    model = DistributedDataParallel(torch.nn.Linear(128, 10).cuda())
    model(torch.from_numpy(numbers).cuda()).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
