# style: each rank keeps its own part of the data on its device, as buffers of a module
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Part(nn.Module):
    def __init__(self, data, target):
        super().__init__()
        self.register_buffer("data", data)
        self.register_buffer("target", target)

    def forward(self, rows):
        return self.data[rows], self.target[rows]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(100 + rank)
    data = torch.randn(256, 8, generator=torch.Generator().manual_seed(0))
    target = data.sum(1, keepdim=True)
    part = Part(data[rank::world], target[rank::world])
    model = DDP(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        order = torch.randperm(128, generator=torch.Generator().manual_seed(epoch))
        for rows in order.split(16):
            x, y = part(rows)
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
