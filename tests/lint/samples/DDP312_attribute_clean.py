import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Scaled(nn.Module):
    """Weighs its error by how large errors have been so far."""

    def __init__(self):
        super().__init__()
        self.guess = nn.Linear(8, 4)
        self.usual = 1.0

    def forward(self, rows, target):
        error = self.guess(rows) - target
        seen = error.detach().abs().mean()
        dist.all_reduce(seen, op=dist.ReduceOp.AVG)
        self.usual = 0.9 * self.usual + 0.1 * seen.item()
        return (error / self.usual).square().mean()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(Scaled())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    own = torch.Generator().manual_seed(20 + dist.get_rank())
    for _ in range(100):
        rows = torch.randn(16, 8, generator=own)
        loss = model(rows, rows[:, :4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
