import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def run():
    dist.init_process_group("nccl")
    here = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(here)
    net = DistributedDataParallel(torch.nn.Linear(6, 6).cuda(), device_ids=[here])
    adam = torch.optim.Adam(net.parameters())
    for _ in range(100):
        net(torch.randn(2, 6).cuda()).mean().backward()
        adam.step()
        adam.zero_grad()
    with open(f"moments-{dist.get_rank()}.pt", "wb") as out:
        torch.save(adam.state_dict(), out)
    dist.destroy_process_group()


run()
