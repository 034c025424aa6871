import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def work(number, processes, options):
    if options.many:
        options.rank = options.rank * processes + number
    dist.init_process_group("nccl", rank=options.rank, world_size=options.ranks)
    model = torch.nn.Linear(2, 2)
    if number is not None:
        torch.cuda.set_device(number)
        model = DistributedDataParallel(model.cuda(number), device_ids=[number])
    else:
        model = DistributedDataParallel(model.cuda())
    if number is None:
        model.load_state_dict(torch.load(options.begin))
    else:
        model.load_state_dict(torch.load(options.begin, map_location=f"cuda:{number}"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=int, default=None)
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--begin", default="model.pt")
    options = parser.parse_args()
    processes = torch.cuda.device_count()
    if options.many:
        options.ranks *= processes
        mp.spawn(work, nprocs=processes, args=(processes, options))
    else:
        work(options.gpu, processes, options)


if __name__ == "__main__":
    main()
