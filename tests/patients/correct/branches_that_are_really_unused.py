# style: mixture of heads chosen by the data, find_unused_parameters
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Router(nn.Module):
    """Each batch goes through one of two experts, by its own mean."""

    def __init__(self, width=8):
        super().__init__()
        self.stem = nn.Linear(width, width)
        self.left = nn.Linear(width, 1)
        self.right = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x):
        h = self.stem(x).relu()
        return self.left(h) if x.mean() > 0 else self.right(h)


def batches(rank, count):
    generator = torch.Generator().manual_seed(60 + rank)
    for _ in range(count):
        x = torch.randn(5, 8, generator=generator)
        yield x, x.max(dim=1, keepdim=True).values


def train(steps=14):
    torch.manual_seed(4)
    model = DDP(Router(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for x, y in batches(dist.get_rank(), steps):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    last = train()
    if dist.get_rank() == 0:
        print("last loss", last)
    dist.destroy_process_group()
