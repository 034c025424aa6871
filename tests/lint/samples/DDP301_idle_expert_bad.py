import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(width, width), nn.ReLU())


class Routed(nn.Module):
    def __init__(self, width, many):
        super().__init__()
        self.gate = nn.Linear(width, many)
        self.blocks = nn.ModuleList(Block(width) for _ in range(many))

    def forward(self, x):
        weight, which = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for number, block in enumerate(self.blocks):
            rows = (which == number).nonzero(as_tuple=True)[0]
            if rows.numel() == 0:
                continue
            out = out.index_add(0, rows, block(x[rows]) * weight[rows, None])
        return out


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Routed(8, 4))  # <-- DDP301 likely
    optimizer = torch.optim.AdamW(model.parameters())
    source = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(100):
        loss = model(torch.randn(16, 8, generator=source)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
