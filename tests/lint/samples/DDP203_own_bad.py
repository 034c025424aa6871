import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader


class Piles:
    """Batches of like samples, dealt to the ranks."""

    def __init__(self, number, seed):
        self.number, self.seed, self.at = number, seed, 0

    def begin(self, epoch):
        self.at = epoch

    def __iter__(self):
        dice = torch.Generator().manual_seed(self.seed + self.at)
        order = torch.randperm(self.number, generator=dice).tolist()
        mine = order[dist.get_rank() :: dist.get_world_size()]
        return iter([mine[k : k + 2] for k in range(0, len(mine), 2)])


class Told:
    def before(self, loader, epoch):
        other = DataLoader(torch.randn(8, 4))
        if hasattr(other.sampler, "set_epoch"):
            other.sampler.set_epoch(epoch)
        if hasattr(loader.sampler, "set_epoch"):  # <-- DDP203
            loader.sampler.set_epoch(epoch)


def main():
    dist.init_process_group("gloo")
    piles = Piles(64, seed=3)
    loader = DataLoader(torch.randn(64, 4), batch_sampler=piles)
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(5):
        Told().before(loader, epoch)
        for batch in loader:
            net(batch).mean().backward()
            opt.step()
            opt.zero_grad()
    held_out = DataLoader(torch.randn(64, 4), batch_sampler=Piles(64, seed=4))
    for _ in range(2):
        for batch in held_out:
            net.module(batch)
    dist.destroy_process_group()


main()
