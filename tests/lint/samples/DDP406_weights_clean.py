import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Norm(nn.LayerNorm):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)

    def forward(self, x):
        return super().forward(x.mul(2))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = Norm(width, eps=1e-6)
        self.drop = nn.Dropout(0.1)
        self.inner = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x + self.scale * self.inner(self.drop(self.norm(x)))


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.width = width
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            self.blocks.append(Block(width))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main(loader, width):
    dist.init_process_group("gloo")
    model = DDP(Net(width, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, x in enumerate(loader):
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
        if number % 100 == 0 and dist.get_rank() == 0:
            model.eval()
            with torch.no_grad():
                print(model(x[:4]))
            model.train()


if __name__ == "__main__":
    main(torch.load("batches.pt"), 64)
