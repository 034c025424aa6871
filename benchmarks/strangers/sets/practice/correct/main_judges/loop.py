import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def make_model():
    torch.manual_seed(9)
    net = nn.Sequential(nn.Linear(10, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2))
    model = DDP(net)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def sample(gen, n):
    x = torch.randn(n, 10, generator=gen)
    return x, (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()


def epoch_of_steps(model, opt, epoch, steps=12):
    model.train()
    gen = torch.Generator().manual_seed(1000 * dist.get_rank() + epoch)
    for _ in range(steps):
        x, y = sample(gen, 32)
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
