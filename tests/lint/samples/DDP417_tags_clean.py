import torch
import torch.distributed as dist
from torch import nn

WIDE, TURNS, PIECES = 8, 4, 3


def left(net, optimizer):
    for turn in range(TURNS):
        for piece in range(PIECES):
            out = net(torch.randn(2, WIDE))
            dist.send(out.detach(), dst=1, tag=turn * PIECES + piece)
            slope = torch.empty_like(out)
            dist.recv(slope, src=1, tag=turn * PIECES + piece)
            out.backward(slope)
        optimizer.step()
        optimizer.zero_grad()


def right(net, optimizer):
    for turn in range(TURNS):
        for piece in range(PIECES):
            seen = torch.empty(2, WIDE)
            dist.recv(seen, src=0, tag=piece + PIECES * turn)
            seen.requires_grad_()
            net(seen).square().mean().backward()
            dist.send(seen.grad, dst=0, tag=turn * PIECES + piece)
        optimizer.step()
        optimizer.zero_grad()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = nn.Linear(WIDE, WIDE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if dist.get_rank() == 0:
        left(net, optimizer)
    elif dist.get_rank() == 1:
        right(net, optimizer)


main()
