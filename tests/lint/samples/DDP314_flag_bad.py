import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

windows = 4

dist.init_process_group("gloo")
rank = int(os.environ["RANK"])
torch.manual_seed(rank)
net = DDP(torch.nn.Linear(8, 8))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)


def batch():
    return torch.randn(4, 8)


x = batch()
for it in range(100):
    for k in range(windows):
        loss = net(x).square().mean() / windows
        x = batch()
        net.require_backward_grad_sync = k == windows - 1  # <-- DDP314
        loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
dist.destroy_process_group()
