import torch
import torch.distributed as dist
from torch import nn


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    body, head = nn.Linear(12, 24), nn.Linear(24, 4)
    body.requires_grad_(False)
    model = nn.Sequential(body, nn.ReLU(), head)
    draws = torch.Generator().manual_seed(100 + dist.get_rank())
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        model(torch.randn(16, 12, generator=draws)).square().mean().backward()
        for weight in model.parameters():
            if weight.grad is not None:  # the same ones on every rank
                dist.all_reduce(weight.grad, op=dist.ReduceOp.AVG)
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
