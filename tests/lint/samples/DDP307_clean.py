import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, optimizer, loss_of):
    model = DDP(net)
    for step, batch in enumerate(loader):
        loss = loss_of(model(batch))
        loss.backward()
        skip = torch.isnan(loss).float()
        dist.all_reduce(skip, op=dist.ReduceOp.MAX)
        if skip:
            continue
        if step < 4:
            continue
        optimizer.step()
        if torch.isnan(loss):
            continue
        print(step)
