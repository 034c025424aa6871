# style: config class, find_unused_parameters left on "to be safe"
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Config:
    depth = 3
    width = 12
    steps = 12
    lr = 2e-3


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, x):
        return x + self.layers(x)


def build(config):
    blocks = [Residual(config.width) for _ in range(config.depth)]
    return nn.Sequential(*blocks, nn.Linear(config.width, 1))


def main(config):
    torch.manual_seed(0)
    model = DDP(build(config), find_unused_parameters=True)  # <-- DDP302
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, weight_decay=0.01)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(config.steps):
        x = torch.randn(8, config.width, generator=generator)
        loss = nn.functional.mse_loss(model(x), x.norm(dim=1, keepdim=True))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 5 == 0 and dist.get_rank() == 0:
            print(step, loss.item())


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main(Config())
    dist.destroy_process_group()
