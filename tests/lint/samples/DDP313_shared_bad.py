import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def step(net, losses, optimizer):
    model = DistributedDataParallel(net)
    wanted = [each for each in model.parameters() if each.requires_grad]
    parts = [torch.autograd.grad(loss, wanted) for loss in losses]  # <-- DDP313
    for parameter, *own in zip(wanted, *parts):
        parameter.grad = torch.stack(own).sum(0)
    optimizer.step()
    dist.barrier()
