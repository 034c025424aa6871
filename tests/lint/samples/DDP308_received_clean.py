import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Ring:
    def __init__(self):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def pass_on(self, edge):
        """What the neighbour before this rank has at its edge."""
        before = torch.zeros(1)
        to, of = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        if self.rank % 2:
            dist.recv(before, of)
            dist.send(edge, to)
            return before
        dist.send(edge, to)
        dist.recv(before, of)
        return before


def main(field):
    dist.init_process_group("gloo")
    ring = Ring()
    model = DistributedDataParallel(nn.Linear(9, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mine = field[ring.rank * 8 : ring.rank * 8 + 8]
    for _ in range(100):
        beside = ring.pass_on(mine[-1:].contiguous())
        flow = model(torch.cat([beside, mine]))
        loss = (torch.cat([beside, flow]).diff() - mine).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(torch.linspace(0, 1, 32))
