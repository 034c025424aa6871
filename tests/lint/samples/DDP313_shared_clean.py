import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def step(net, losses, optimizer):
    model = DistributedDataParallel(net)
    wanted = [each for each in model.parameters() if each.requires_grad]
    parts = [torch.autograd.grad(loss, wanted) for loss in losses]
    for parameter, *own in zip(wanted, *parts):
        parameter.grad = torch.stack(own).sum(0)
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
    optimizer.step()
