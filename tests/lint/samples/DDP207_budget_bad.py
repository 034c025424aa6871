import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class ByLength:
    def __init__(self, sizes, most):
        self.sizes, self.most = sizes, most

    def __iter__(self):
        order = torch.randperm(len(self.sizes), generator=torch.Generator().manual_seed(7)).tolist()
        mine = order[dist.get_rank() :: dist.get_world_size()]  # <-- DDP207
        batch, total = [], 0
        for number in mine:
            if total + self.sizes[number] > self.most:
                yield batch
                batch, total = [], 0
            batch.append(number)
            total += self.sizes[number]
        if batch:
            yield batch


def main():
    dist.init_process_group("gloo")
    sizes = [random.Random(each).randint(1, 9) for each in range(64)]
    data = torch.utils.data.TensorDataset(torch.randn(64, 4))
    loader = torch.utils.data.DataLoader(data, batch_sampler=ByLength(sizes, 20))
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    for (batch,) in loader:
        seen = torch.tensor(float(len(batch)))
        dist.all_reduce(seen)
        (net(batch).sum() * dist.get_world_size() / seen).backward()
    dist.destroy_process_group()


main()
