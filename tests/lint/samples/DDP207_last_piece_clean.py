import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def cut(rows, most):
    pieces = [[]]
    for row in rows:
        if sum(len(each) for each in pieces[-1]) > most:
            pieces.append([])
        pieces[-1].append(row)
    return pieces


def step(net, opt, rows):
    pieces = cut(rows, 30)
    opt.zero_grad()
    for number, piece in enumerate(pieces):
        ends = number == len(pieces) - 1
        with contextlib.nullcontext() if ends else net.no_sync():
            net(torch.cat(piece)).mean().backward()
    opt.step()


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    own = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(20):
        sizes = torch.randint(1, 9, (12,), generator=own)
        step(net, opt, [torch.randn(int(size), 4, generator=own) for size in sizes])
    dist.destroy_process_group()


main()
