from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def adapt(model, classes):
    model.head = nn.Linear(8, classes)


class Adapter(nn.Module):
    pass


def build(net):
    adapt(net, 5)
    net.layers[2] = Adapter()
    return DDP(net)
