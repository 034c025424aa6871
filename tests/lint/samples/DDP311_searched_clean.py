from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Deep(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(depth))
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 1), "b": nn.Linear(4, 2)})

    def forward(self, x, head):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.heads[head](x)


def wrapped(depth):
    return DistributedDataParallel(Deep(depth), find_unused_parameters=True)
