# style: FSDP2 (fully_shard) on the CPU
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, x):
        return x + self.inner(x)


def build(mesh, width=8, depth=2):
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(width) for _ in range(depth)), nn.Linear(width, 1))
    for block in model[:-1]:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def train(steps=6):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = build(mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    source = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        x = torch.randn(4, 8, generator=source)
        loss = nn.functional.mse_loss(model(x), x.mean(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    loss = train()
    if dist.get_rank() == 0:
        print(f"{loss:.5f}")
    dist.destroy_process_group()
