import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


class Keeper:
    def __init__(self, writer):
        self.writer = writer % dist.get_world_size()

    def keep(self, net, optimizer):
        optimizer.consolidate_state_dict(to=self.writer)
        if dist.get_rank() == self.writer:
            torch.save([net.module.state_dict(), optimizer.state_dict()], "last.pt")
        dist.barrier()


def main():
    dist.init_process_group("gloo")
    net = DDP(torch.nn.Linear(4, 1))
    optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=1e-3)
    keeper = Keeper(-1)
    for _ in range(3):
        net(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        keeper.keep(net, optimizer)


if __name__ == "__main__":
    main()
