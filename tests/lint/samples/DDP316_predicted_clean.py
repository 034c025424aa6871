import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Siamese(nn.Module):
    """Two views; the prediction of one is held against the other, which stands still."""

    def __init__(self):
        super().__init__()
        self.encoder, self.predictor = nn.Linear(30, 8), nn.Linear(8, 8)

    def forward(self, x):
        z = self.encoder(x)
        return z, self.predictor(z)


def still(z):
    parts = [torch.empty_like(z) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, z.detach())
    return torch.cat(parts)


def agreement(p, z, start):
    return F.cross_entropy(p @ still(z).T, torch.arange(start, start + len(p)))


def main(views):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(Siamese())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    sampler = DistributedSampler(views)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for one, other in DataLoader(views, 32, sampler=sampler, drop_last=True):
            z, p = model(torch.cat([one, other]))
            (z1, z2), (p1, p2) = z.chunk(2), p.chunk(2)
            start = 32 * dist.get_rank()
            optimizer.zero_grad()
            (agreement(p1, z2, start) + agreement(p2, z1, start)).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main([(torch.randn(30), torch.randn(30)) for _ in range(256)])
