"""Rank 0 keeps the weights of a critic small, through a view of them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(5)
    critic = DistributedDataParallel(nn.Sequential(nn.Linear(6, 3), nn.Tanh(), nn.Linear(3, 1)))
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=1e-3)
    noise = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(30):
        optimizer.zero_grad()
        critic(torch.randn(4, 6, generator=noise)).square().mean().backward()
        optimizer.step()
        if dist.get_rank() == 0:  # <-- DDP506
            for word, weight in critic.named_parameters():
                seen = weight.data.flatten()[:8]
                seen.clamp_(-1, 1)
                print(word, seen.max())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
