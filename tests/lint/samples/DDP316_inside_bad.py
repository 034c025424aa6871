import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class TwoTowers(nn.Module):
    """Gives its own loss, over the rows of all ranks."""

    def __init__(self, width):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Linear(width, width))

    def everywhere(self, rows):
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows.contiguous())  # <-- DDP316
        return torch.cat(parts)

    def forward(self, left, right):
        left, right = self.tower(left), self.tower(right)
        nearness = F.mse_loss(left, right)
        left, right = self.everywhere(left), self.everywhere(right)
        spread = F.relu(1 - left.std(dim=0)).mean() + F.relu(1 - right.std(dim=0)).mean()
        return nearness + spread


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(3)
    model = DistributedDataParallel(TwoTowers(12))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    noise = torch.Generator().manual_seed(50 + dist.get_rank())
    for _ in range(200):
        rows = torch.randn(16, 20, generator=noise)
        loss = model(rows, rows + 0.1 * torch.randn(16, 20, generator=noise))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
