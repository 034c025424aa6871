from contextlib import nullcontext

from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils import clip_grad_norm_


def train(net, batches, optimizer):
    model = DDP(net)
    for index, batch in enumerate(batches, 1):
        boundary = index % 4 == 0
        with nullcontext() if boundary else model.no_sync():
            model(batch).sum().backward()
        if boundary:
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
