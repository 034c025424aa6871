from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def build(net):
    model = DDP(net)
    model.module.head = nn.Linear(8, 2)  # <-- DDP305
    model.module.add_module("extra", nn.Linear(2, 2))  # <-- DDP305
    for p in net.backbone.parameters():
        p.requires_grad = True  # <-- DDP305
    net.stem.requires_grad_(True)  # <-- DDP305
    return model
