import os

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

HOME = os.environ.get("OUTPUTS", "/shared/outputs")


def snapshot(folder, number, net, zero):
    place = dist.get_rank()
    if place == 0:
        os.makedirs(folder, exist_ok=True)
        torch.save(net.module.state_dict(), os.path.join(folder, f"net-{number}.pt"))
    torch.save(zero.optim.state_dict(), os.path.join(folder, f"{number}-{place}.pt"))  # <-- DDP407


def main():
    os.makedirs(HOME, exist_ok=True)
    dist.init_process_group("nccl")
    at = int(os.environ["LOCAL_RANK"])
    net = DistributedDataParallel(torch.nn.Linear(7, 7).to(at), device_ids=[at])
    zero = ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=1e-3)
    for step in range(1, 1001):
        zero.zero_grad()
        net(torch.rand(3, 7, device=at)).square().mean().backward()
        zero.step()
        if step % 250 == 0:
            snapshot(os.path.join(HOME, "snapshots", "large"), step, net, zero)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
