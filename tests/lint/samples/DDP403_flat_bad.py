"""All gradients go round in one tensor, which is shorter where a part of the model was not used."""

import torch
import torch.distributed as dist
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.text = nn.Linear(8, 8)
        self.picture = nn.Linear(8, 8)

    def forward(self, page):
        found = self.text(page)
        if (page[:, 0] > 2).any():
            found = found + self.picture(page)
        return found


def put_in_one(net):
    flat = []
    for weights in net.parameters():
        if weights.grad is not None:
            flat.append(weights.grad.view(-1))
    return torch.cat(flat)


def average(net):
    together = put_in_one(net)
    dist.all_reduce(together)  # <-- DDP403
    together /= dist.get_world_size()
    begin = 0
    for weights in net.parameters():
        if weights.grad is not None:
            number = weights.numel()
            weights.grad.copy_(together[begin : begin + number].view_as(weights))
            begin += number


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = Reader()
    steps = torch.optim.SGD(net.parameters(), lr=0.1)
    pages = torch.Generator().manual_seed(1 + dist.get_rank())
    for _ in range(20):
        steps.zero_grad()
        net(torch.randn(4, 8, generator=pages)).square().mean().backward()
        average(net)
        steps.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
