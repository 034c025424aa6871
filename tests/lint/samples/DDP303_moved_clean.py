from itertools import chain

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class GE2ELoss(nn.Module):
    def __init__(self, device, init_w=10.0, init_b=-5.0):
        super().__init__()
        self.device = device
        self.w = nn.Parameter(torch.tensor(init_w))
        self.b = nn.Parameter(torch.tensor(init_b))

    def forward(self, embeds):
        return (embeds * self.w + self.b).mean()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return self.lin(x)


def train(rank, cfg, loader):
    net = Net()
    if cfg.n_gpus > 1:
        dist.init_process_group("nccl", rank=rank, world_size=cfg.n_gpus)
    device = torch.device(f"cuda:{rank}")
    model = net.to(device)
    loss_fn = GE2ELoss(device).to(device)
    if cfg.n_gpus > 1:
        model = DDP(model, device_ids=[rank]).to(device)
        loss_fn = DDP(loss_fn, device_ids=[rank])
    optim = torch.optim.SGD(chain(model.parameters(), loss_fn.parameters()), lr=0.01)
    for _ in range(3):
        for x in loader:
            optim.zero_grad()
            loss = loss_fn(model(x))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 3)
            torch.nn.utils.clip_grad_norm_(loss_fn.parameters(), 1)
            optim.step()
