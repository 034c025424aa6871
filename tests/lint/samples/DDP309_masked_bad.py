import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LENGTHS = (3, 17, 5, 11)


def step(x, y):
    model = DistributedDataParallel(nn.Linear(8, 20))
    kept = torch.arange(20) < LENGTHS[dist.get_rank() % 4]
    losses = nn.functional.mse_loss(model(x), y, reduction="none")
    (losses * kept).sum().div(kept.sum()).backward()  # <- DDP309
