"""The last rank serves what the others train, in the group of all."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def serve(net, requests):
    with torch.no_grad():
        for request in requests:
            print(net(request).mean().item())


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    learners = dist.new_group(list(range(size - 1)))
    net = torch.nn.Linear(6, 2)
    learns = rank < size - 1
    if learns:
        wrapped = DDP(net)  # <-- DDP401
        optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    for _ in range(4):
        if learns:
            loss = wrapped(torch.randn(8, 6)).square().mean()
            optimizer.zero_grad()
            loss.backward()  # <-- DDP401
            optimizer.step()
        for weight in net.parameters():
            dist.broadcast(weight.data, src=0)
        if not learns:
            serve(net, torch.randn(3, 2, 6))
    dist.destroy_process_group()


main()
