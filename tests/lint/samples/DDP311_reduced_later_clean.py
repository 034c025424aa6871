"""A judge with a penalty: the fake's backward reduces all that has gathered before the step."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("nccl")
    device = dist.get_rank() % torch.cuda.device_count()
    judge = DDP(nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1)).to(device))
    maker = DDP(nn.Linear(4, 16).to(device))
    of_judge = torch.optim.Adam(judge.parameters())
    for real in torch.load("images.pt"):
        judge.zero_grad()
        real = real.to(device)
        real.requires_grad = True
        told = judge(real)
        F.softplus(-told).mean().backward(retain_graph=True)
        (slope,) = torch.autograd.grad(told.sum(), real, create_graph=True)
        slope.square().mean().backward()
        fake = maker(torch.randn(8, 4, device=device)).detach()
        F.softplus(judge(fake)).mean().backward()
        of_judge.step()
    dist.destroy_process_group()


main()
