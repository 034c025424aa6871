import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 4)

    def forward(self, rays):
        out = self.body(rays)
        return {"colour": out[:, :3], "depth": out[:, 3], "samples": len(rays)}


def render(field, rays, rank, size):
    part = torch.chunk(rays, size)[rank]
    kept = {}
    with torch.no_grad():
        found = field(part)
    for name in found:
        if torch.is_tensor(found[name]) and found[name].max() > 0:  # <-- DDP418
            kept[name] = found[name]
    for name in kept:
        dist.all_reduce(kept[name])
    return kept


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    field = DistributedDataParallel(Field())
    optimizer = torch.optim.SGD(field.parameters(), lr=0.1)
    torch.manual_seed(1)
    rays = torch.randn(256, 6)
    for step in range(100):
        torch.manual_seed(step * size + rank)
        optimizer.zero_grad()
        field(torch.randn(8, 6))["colour"].square().mean().backward()
        optimizer.step()
        if step % 10 == 0:
            render(field.module, rays, rank, size)
