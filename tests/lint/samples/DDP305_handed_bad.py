from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def adapt(model, classes):
    model.head = nn.Linear(8, classes)  # <-- DDP305


class Adapter(nn.Module):
    pass


def build(net):
    model = DDP(net)
    adapt(model.module, 5)
    net.layers[2] = Adapter()  # <-- DDP305
    return model
