import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Meters:
    """Averages over the ranks, by name."""

    def __init__(self, numbers):
        self.numbers = numbers

    def over_ranks(self):
        names = sorted(self.numbers)
        packed = torch.stack([self.numbers[name].detach() for name in names])
        dist.reduce(packed, dst=0)  # <-- DDP416
        packed /= dist.get_world_size()
        return dict(zip(names, packed))


def validate(net, batches):
    off = total = torch.zeros(())
    with torch.no_grad():
        for x, y in batches:
            off = off + (net.module(x) - y).abs().sum()
            total = total + len(y)
    return Meters({"off": off, "total": total})


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(nn.Linear(6, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)
    draw = torch.Generator().manual_seed(dist.get_rank())
    x = torch.randn(256, 6, generator=draw)
    for _ in range(20):
        opt.zero_grad()
        (net(x) - x.mean(1, keepdim=True)).pow(2).mean().backward()
        opt.step()
        means = validate(net, [(x, x.mean(1, keepdim=True))]).over_ranks()
        plateau.step(means["off"] / means["total"])  # <-- DDP216
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
