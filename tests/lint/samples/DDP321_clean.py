import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def running(old, new, decay):
    old.data.mul_(decay).add_(new, alpha=1 - decay)


class Codebook(nn.Module):
    """Vectors that follow the means of what is assigned to them."""

    def __init__(self, size=32, dim=8, decay=0.99):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(size, dim))
        self.register_buffer("totals", self.codes.clone())
        self.register_buffer("counts", torch.ones(size))

    def forward(self, z):
        picked = torch.cdist(z, self.codes).argmin(1)
        quantised = F.embedding(picked, self.codes)
        if self.training:
            onehot = F.one_hot(picked, len(self.codes)).float()
            counts, totals = onehot.sum(0), onehot.t() @ z
            dist.all_reduce(counts)
            dist.all_reduce(totals)
            running(self.counts, counts, self.decay)
            running(self.totals, totals, self.decay)
            self.codes.copy_(self.totals / self.counts[:, None])
        return z + (quantised - z).detach()


class Standardise(nn.Module):
    """Normalises by the batch, and keeps an average for later, as BatchNorm does."""

    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        if not self.training:
            return x - self.mean
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        self.seen += len(x)
        return x - x.mean(0)


class Centre(nn.Module):
    """Takes the mean of all ranks' batches away."""

    def __init__(self, width):
        super().__init__()
        self.register_buffer("centre", torch.zeros(width))

    def forward(self, x):
        self.centre[:] = x.detach().mean(0)
        dist.all_reduce(self.centre)
        self.centre /= dist.get_world_size()
        return x - self.centre


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.read, self.book, self.write = nn.Linear(16, 8), Codebook(), nn.Linear(8, 16)
        self.norm, self.centre = Standardise(16), Centre(8)

    def forward(self, x):
        return self.write(self.book(self.centre(self.read(self.norm(x)))))


def main(batches):
    dist.init_process_group("gloo")
    model = DDP(Coder())
    optimizer = torch.optim.Adam(model.parameters())
    for x in batches:
        optimizer.zero_grad()
        F.mse_loss(model(x), x).backward()
        optimizer.step()


if __name__ == "__main__":
    main([torch.randn(4, 16)])
