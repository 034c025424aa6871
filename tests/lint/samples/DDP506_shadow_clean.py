import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Polyak:
    def __init__(self, net, keep=0.999):
        self.keep = keep
        self.slow = [weight.clone().detach() for weight in net.parameters()]

    @torch.no_grad()
    def __call__(self, net):
        for slow, weight in zip(self.slow, net.parameters(), strict=True):
            slow.mul_(self.keep).add_(weight, alpha=1 - self.keep)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(7 * dist.get_rank())
    net = torch.nn.Linear(3, 1)
    ddp = DDP(net)
    average = Polyak(net)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        ddp(torch.randn(5, 3)).square().mean().backward()
        optimizer.step()
        average(net)


main()
