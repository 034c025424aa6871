import gzip
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def share(net, name):
    if dist.get_rank() == 0:
        with gzip.open(name, "wb") as out:
            torch.save(net.module.state_dict(), out)
    dist.barrier()
    with gzip.open(name, "rb") as found:
        net.module.load_state_dict(torch.load(found, map_location="cpu"))


def main():
    dist.init_process_group("nccl")
    here = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(here)
    net = DDP(torch.nn.Linear(3, 3).cuda(), device_ids=[here])
    share(net, "first.pt.gz")
    dist.destroy_process_group()


main()
