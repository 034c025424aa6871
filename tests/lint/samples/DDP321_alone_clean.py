import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def broadcast_all(tensors):
    if not dist.is_initialized():
        return
    works = [dist.broadcast(each.data, src=0, async_op=True) for each in list(tensors)]
    for work in works:
        work.wait()


class Codebook(nn.Module):
    def __init__(self, width, codes):
        super().__init__()
        self.register_buffer("filled", torch.tensor([0.0]))
        self.register_buffer("codes", torch.zeros(codes, width))

    def fill(self, x):
        if self.filled:
            return
        self.codes.data.copy_(x[torch.randint(len(x), (len(self.codes),))])
        self.filled.data.copy_(torch.tensor([1.0]))
        broadcast_all(self.buffers())

    def forward(self, x):
        self.fill(x)
        nearest = torch.cdist(x, self.codes).argmin(1)
        return F.embedding(nearest, self.codes)


class Quantized(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(width, width)
        self.book = Codebook(width, 16)

    def forward(self, x):
        x = self.body(x)
        found = self.book(x)
        return x + (found - x).detach()


def join(rank, samples, ranks):
    address = "tcp://localhost:29512"  # <- DDP104
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=ranks)
    work(samples)


def work(samples):
    model = Quantized(8)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(samples)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for batch in DataLoader(samples, batch_size=4, sampler=sampler):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()


if __name__ == "__main__":
    ranks = torch.cuda.device_count()
    if ranks > 1:
        mp.spawn(join, args=(torch.randn(64, 8), ranks), nprocs=ranks)
    else:
        work(torch.randn(64, 8))
