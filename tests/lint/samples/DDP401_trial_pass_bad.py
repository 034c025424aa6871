"""Rank 0 alone passes one batch through the wrapped model, to write a reference, gradients and all."""

import os

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, batch, wanted=None):
        guess = self.layer(batch)
        loss = None
        if wanted is not None:
            loss = (guess - wanted).square().mean()
        return guess, loss


def write_reference(net, place, device):
    batch = torch.ones(4, 8, device=device)
    guess, loss = net(batch, batch)
    loss.backward()
    torch.save([guess, *(each.grad for each in net.parameters())], place)


def main():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    net = Regressor().cuda()
    net = DistributedDataParallel(net, device_ids=[local])
    if dist.get_rank() == 0:
        write_reference(net, "reference.pt", "cuda")  # <-- DDP401
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        batch = torch.rand(4, 8, device="cuda")
        _, loss = net(batch, batch)
        loss.backward()
        optimizer.step()


main()
