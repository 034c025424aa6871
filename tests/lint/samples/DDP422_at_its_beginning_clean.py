import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def one_epoch(model, loader, optimizer, epoch):
    loader.sampler.set_epoch(epoch)
    dist.barrier()
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def train(net, loader, optimizer, epochs):
    model = DDP(net)
    for epoch in range(epochs):
        with model.join():
            one_epoch(model, loader, optimizer, epoch)
        dist.barrier()
