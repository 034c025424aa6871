import os
import sys
import traceback

import torch
import torch.distributed as dist
from torch import nn

HERE = int(os.environ["LOCAL_RANK"])


def keep(net, at):
    torch.save({"weights": net.module.state_dict(), "at": at}, "/shared/run.ckpt")  # <-- DDP502


def work():
    torch.cuda.set_device(HERE)
    dist.init_process_group("nccl")
    net = nn.parallel.DistributedDataParallel(nn.Linear(5, 5).cuda(), device_ids=[HERE])
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for at in range(1000):
        sgd.zero_grad()
        net(torch.rand(8, 5, device="cuda")).pow(2).mean().backward()
        sgd.step()
        if at % 100 == 99 and HERE == 0:
            keep(net, at)
    dist.destroy_process_group()


if __name__ == "__main__":
    try:
        work()
    except Exception:
        traceback.print_exc()
        os.system("sudo shutdown +10")
        sys.exit(1)
