import copy

from torch.nn.parallel import DistributedDataParallel as DDP


def build(net):
    ema = copy.deepcopy(net)  # <-- DDP506
    model = DDP(net)
    return model, ema
