import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)


def fit(batches, optimizer):
    net = Net().double()
    model = DDP(net)
    for batch in batches:
        model(batch).sum().backward()
        optimizer.step()
    small = {name: value.half() for name, value in model.module.state_dict().items()}
    if dist.get_rank() == 0:
        torch.save(small, "small.pt")
    return net.half()
