import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel


class Tower(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(depth))
        self.head = torch.nn.Linear(width, 1)

    def forward(self, x):
        for block in self.blocks:
            x = torch.relu(block(x))
        return self.head(x)


def spread_out(net, device):
    whole = FullyShardedDataParallel(net, device_id=device, sync_module_states=True)
    torch.cuda.synchronize()
    return whole


def main(weights):
    dist.init_process_group("nccl")
    rank, device = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    torch.manual_seed(rank)
    net = Tower(64, 8)
    if rank == 0:
        net.load_state_dict(torch.load(weights, map_location="cpu"))
    net = spread_out(net, device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(100):
        optimizer.zero_grad()
        net(torch.rand(32, 64, device=device)).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
