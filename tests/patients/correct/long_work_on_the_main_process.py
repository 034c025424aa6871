# style: functions, export and evaluation on rank 0
# nproc: 2
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def evaluate(model, batches=6):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for seed in range(batches):
            x = torch.randn(64, 5, generator=torch.Generator().manual_seed(seed))
            total += model(x).abs().mean().item()
            time.sleep(0.2)
    model.train()
    return total / batches


def burn(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        torch.linalg.qr(torch.rand(40, 40))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    for epoch in range(2):
        for _ in range(3):
            x = torch.randn(16, 5, generator=generator)
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: {evaluate(model.module):.4f}")
            burn(0.4)
        dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
