"""Each rank has a file of its own that it looks for."""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main(folder):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    net = DistributedDataParallel(torch.nn.Linear(3, 1).cuda())
    for batch in torch.rand(10, 4, 3):
        net(batch.cuda()).mean().backward()
    last = os.path.join(folder, "last.pt")
    if dist.get_rank() == 0:
        torch.save(net.module.state_dict(), last)
    dist.barrier()
    path = os.path.join(folder, f"own_{dist.get_rank()}.pt")
    if os.path.exists(path):  # <-- DDP513
        again = torch.nn.Linear(3, 1)
        again.load_state_dict(torch.load(path, map_location="cpu"))
        again = DistributedDataParallel(again.cuda())
        print(again(torch.rand(4, 3).cuda()))


if __name__ == "__main__":
    main(sys.argv[1])
