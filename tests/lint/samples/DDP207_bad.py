import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Sampler


class Packed(Sampler):
    def __init__(self, sizes, room):
        self.sizes, self.room = sizes, room
        self.part, self.parts = dist.get_rank(), dist.get_world_size()

    def pack(self, order):
        packed, here = [], []
        for index in order:
            if sum(self.sizes[each] for each in here) + self.sizes[index] > self.room:
                packed.append(here)
                here = []
            here.append(index)
        return packed

    def __iter__(self):
        order = sorted(range(len(self.sizes)))
        yield from self.pack(order[self.part :: self.parts])  # <-- DDP207


def fit(net, data, optimizer):
    net = DDP(net)
    for batch in DataLoader(data, batch_sampler=Packed(data.sizes, 4000)):
        net(batch).backward()
        optimizer.step()
        optimizer.zero_grad()
