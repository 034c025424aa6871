import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Quantizer(nn.Module):
    """Each rank counts its own use of the codes, and some find unused ones before the others."""

    def __init__(self, codes=64, width=8):
        super().__init__()
        self.register_buffer("table", torch.randn(codes, width))
        self.register_buffer("used", torch.ones(codes))

    @torch.no_grad()
    def renew(self, rows):
        unused = self.used < 0.01
        if not unused.any():  # <-- DDP402
            return
        some = rows[torch.randint(0, len(rows), (len(self.used),))]
        self.table.copy_(torch.where(unused[:, None], some, self.table))
        dist.broadcast(self.table, src=0)
        self.used.fill_(1.0)

    def forward(self, rows):
        nearest = torch.cdist(rows, self.table).argmin(1)
        counts = torch.bincount(nearest, minlength=len(self.used)).float()
        self.used.mul_(0.99).add_(counts, alpha=0.01)
        self.renew(rows.detach())
        return rows + (self.table[nearest] - rows).detach()


def main():
    dist.init_process_group("gloo")
    net = nn.Sequential(nn.Linear(16, 8), Quantizer(), nn.Linear(8, 16))
    net = DistributedDataParallel(net, broadcast_buffers=False)
    optimizer = torch.optim.Adam(net.parameters())
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(100):
        x = torch.randn(32, 16, generator=generator)
        loss = (net(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


main()
