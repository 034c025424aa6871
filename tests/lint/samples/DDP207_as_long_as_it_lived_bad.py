import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def played(net, generator):
    parts = []
    for _ in range(4):
        length = int(torch.randint(10, 40, (1,), generator=generator))
        seen = torch.randn(length, 6, generator=generator)
        with torch.no_grad():
            parts.append((seen, net.module(seen)))
    return [torch.cat(column) for column in zip(*parts, strict=True)]


def main():
    dist.init_process_group("gloo")
    generator = torch.Generator().manual_seed(dist.get_rank())
    net = DistributedDataParallel(nn.Linear(6, 1))
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(10):
        seen, told = played(net, generator)
        rows = seen.shape[0]
        order = torch.randperm(rows)
        for begin in range(0, rows, 16):  # <-- DDP207
            at = order[begin : begin + 16]
            loss = (net(seen[at]) - told[at]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


main()
