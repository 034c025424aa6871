import torch
import torch.distributed as dist
from torch import nn


def begin_alike(policy):
    """All ranks begin with rank 0's weights."""
    for weight in policy.parameters():
        dist.broadcast(weight.detach().clone(), src=0)  # <-- DDP303


def share(policy):
    for weight in policy.parameters():
        dist.all_reduce(weight.grad)
        weight.grad /= dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(40 + dist.get_rank())
    policy = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 2))
    begin_alike(policy)
    optimizer = torch.optim.Adam(policy.parameters())
    for _ in range(300):
        optimizer.zero_grad()
        policy(torch.randn(64, 6)).square().mean().backward()
        share(policy)
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
