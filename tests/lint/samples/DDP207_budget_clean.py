import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class ByLength:
    def __init__(self, sizes, most):
        self.sizes, self.most = sizes, most

    def __iter__(self):
        order = torch.randperm(len(self.sizes), generator=torch.Generator().manual_seed(7)).tolist()
        made, batch, total = [], [], 0
        for number in order:
            if total + self.sizes[number] > self.most:
                made.append(batch)
                batch, total = [], 0
            batch.append(number)
            total += self.sizes[number]
        whole = len(made) - len(made) % dist.get_world_size()
        yield from made[dist.get_rank() : whole : dist.get_world_size()]


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
