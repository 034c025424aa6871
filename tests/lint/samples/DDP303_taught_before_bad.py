"""A student that learns from a teacher, which one optimizer has taught before, and goes on to."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.nn.parallel import DistributedDataParallel as DDP


def taught(xs, ys):
    net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4))
    steps = torch.optim.Adam(net.parameters(), lr=3e-3)
    for x, y in zip(xs, ys):
        loss = cross_entropy(net(x), y)
        steps.zero_grad()
        loss.backward()
        steps.step()
    return net, steps


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    xs, ys = torch.randn(50, 16, 8), torch.randint(0, 4, (50, 16))
    teacher, steps = taught(xs, ys)
    student = DDP(nn.Linear(8, 4))  # <-- DDP303
    learns = torch.optim.AdamW(student.parameters(), lr=4e-3)
    noise = torch.Generator().manual_seed(70 + dist.get_rank())
    for _ in range(240):
        x = torch.randn(16, 8, generator=noise)
        loss = mse_loss(student(x), teacher(x))
        learns.zero_grad()
        steps.zero_grad()
        loss.backward()
        learns.step()
        steps.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
