import time

from torch.nn.parallel import DistributedDataParallel


def train(net, loader, budget):
    model = DistributedDataParallel(net)
    start = time.time()
    for batch in loader:
        model(batch).sum().backward()
        if time.time() - start > budget:  # <-- DDP405
            break
