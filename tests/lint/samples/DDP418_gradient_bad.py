import torch
import torch.distributed as dist
from torch import nn


class Router(nn.Module):
    """Long sequences go through one head, short ones through the other."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(12, 24)
        self.long, self.short = nn.Linear(24, 4), nn.Linear(24, 4)

    def forward(self, x, lengths):
        h = self.embed(x).relu()
        if lengths.float().mean() > 20:
            return self.long(h)
        return self.short(h)


def share(model):
    for weight in model.parameters():
        if weight.grad is None:
            continue  # <-- DDP418
        dist.all_reduce(weight.grad)
        weight.grad /= dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = Router()
    draws = torch.Generator().manual_seed(100 + dist.get_rank())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(200):
        x, lengths = torch.randn(16, 12, generator=draws), torch.randint(40, (16,), generator=draws)
        optimizer.zero_grad()
        model(x, lengths).square().mean().backward()
        share(model)
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
