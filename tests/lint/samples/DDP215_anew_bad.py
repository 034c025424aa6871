import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __init__(self, number):
        self.number = number

    def part(self):
        rank, world = 0, 1
        if dist.is_initialized():  # <-- DDP215
            rank, world = dist.get_rank(), dist.get_world_size()
        mine = get_worker_info()
        each = mine.num_workers if mine else 1
        return rank * each + (mine.id if mine else 0), world * each

    def __iter__(self):
        first, step = self.part()
        for number in range(first, self.number, step):
            yield torch.full((4,), float(number))


dist.init_process_group("gloo")
net = DistributedDataParallel(torch.nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in DataLoader(Stream(640), batch_size=4, num_workers=2, multiprocessing_context="spawn"):
    net(batch).mean().backward()
    opt.step()
    opt.zero_grad()
dist.destroy_process_group()
