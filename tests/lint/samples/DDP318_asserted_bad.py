import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.head(x)


def main(args, gpus):
    is_distributed = gpus > 1
    model = Net().cuda()
    if is_distributed:
        model = DDP(model)
    decoder = None
    if args.trt:
        assert not args.fuse or not is_distributed, "of one process"
        decoder = model.head  # <-- DDP318
    print(model(torch.rand(2, 2).cuda()), decoder)


def worker(rank, args, gpus):
    dist.init_process_group("nccl", init_method=os.environ["URL"], rank=rank, world_size=gpus)
    torch.cuda.set_device(rank)
    main(args, gpus)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trt", action="store_true")
    parser.add_argument("--fuse", action="store_true")
    parser.add_argument("--gpus", type=int, default=8)
    args = parser.parse_args()
    if args.gpus > 1:
        mp.spawn(worker, (args, args.gpus), nprocs=args.gpus)
    else:
        main(args, args.gpus)
