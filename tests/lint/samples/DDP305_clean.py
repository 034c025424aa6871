from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def build(net):
    net.head = nn.Linear(8, 2)
    net.add_module("extra", nn.Linear(2, 2))
    for p in net.backbone.parameters():
        p.requires_grad = True
    model = DDP(net)
    for p in net.backbone.parameters():
        p.requires_grad = False
    return model


def unfreeze(net):
    model = DDP(net)
    net.requires_grad_(True)
    model = DDP(net)
    return model
