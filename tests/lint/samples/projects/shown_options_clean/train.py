import os

import torch
import torch.distributed as dist
from options import parse


def main():
    options = parse()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8).cuda())
    model(torch.rand(8, device="cuda")).sum().mul(options.lr).backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
