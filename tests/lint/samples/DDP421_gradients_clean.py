import torch
import torch.distributed as dist
from torch import nn


def share(net):
    for weight in net.parameters():
        dist.all_reduce(weight.grad)


def main(pieces=4):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    noise = torch.Generator().manual_seed(dist.get_rank())
    for step in range(40):
        rows = torch.randn(8, 6, generator=noise)
        (net(rows).pow(2).mean() / pieces).backward()
        if (step + 1) % pieces == 0:
            share(net)
            for weight in net.parameters():
                weight.grad /= dist.get_world_size()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
