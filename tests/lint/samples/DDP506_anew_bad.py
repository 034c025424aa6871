from collections import OrderedDict
from copy import deepcopy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@torch.no_grad()
def follow(average, model, decay=0.999):
    kept = OrderedDict(average.named_parameters())
    for name, weight in model.named_parameters():
        kept[name].mul_(decay).add_(weight.data, alpha=1 - decay)


def main(batches, seed):
    dist.init_process_group("gloo")
    torch.manual_seed(seed + dist.get_rank())
    net, head = nn.Linear(8, 8), nn.Linear(8, 2)
    average = deepcopy(net)  # <-- DDP506
    of_head = deepcopy(head)  # <-- DDP506
    model = DistributedDataParallel(net)
    wrapped = DistributedDataParallel(head)
    follow(average, model.module, decay=0.5)
    if seed:
        of_head.load_state_dict(wrapped.module.state_dict())
    optimizer = torch.optim.SGD([*model.parameters(), *wrapped.parameters()], lr=0.1)
    for batch in batches:
        optimizer.zero_grad()
        wrapped(model(batch)).sum().backward()
        optimizer.step()
        follow(average, model.module)
        follow(of_head, wrapped.module)
    return average, of_head
