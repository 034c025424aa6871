# style: transformer blocks, activation checkpointing
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        h = self.norm(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(x)


class Encoder(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.embed = nn.Linear(3, width)
        self.shared = Block(width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = self.embed(x)
        for _ in range(2):
            x = checkpoint(self.shared, x, use_reentrant=True)  # <-- DDP311
        return self.out(x.mean(1))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Encoder())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(rank)
    for step in range(4):
        x = torch.randn(4, 5, 3, generator=generator)
        optimizer.zero_grad()
        loss = (model(x) - x.sum((1, 2))[:, None]).pow(2).mean()
        loss.backward()  # <-- DDP311
        optimizer.step()
        if rank == 0:
            print(f"step {step} loss {loss.item():.4f}")
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
