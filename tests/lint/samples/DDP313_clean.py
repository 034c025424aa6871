import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def step(net, x):
    model = DDP(net)
    out = model(x)
    (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    (out.sum() + slope.square().sum()).backward()
