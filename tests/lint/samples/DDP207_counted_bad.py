import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

TURNS = 75


def mine(rank, world):
    return [seed for seed in range(TURNS) if seed % world == rank]


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for seed in mine(dist.get_rank(), dist.get_world_size()):  # <-- DDP207
        draws = torch.Generator().manual_seed(seed)
        optimizer.zero_grad()
        net(torch.randn(8, 4, generator=draws)).square().mean().backward()
        optimizer.step()


main()
