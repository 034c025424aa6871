import copy

from torch.nn.parallel import DistributedDataParallel as DDP


def build(net):
    model = DDP(net)
    ema = copy.deepcopy(model.module)
    return model, ema
