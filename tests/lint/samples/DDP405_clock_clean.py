import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(net, loader, budget):
    model = DistributedDataParallel(net)
    start = time.time()
    for batch in loader:
        model(batch).sum().backward()
        late = torch.tensor(float(time.time() - start > budget))
        dist.broadcast(late, src=0)
        if late:
            break
