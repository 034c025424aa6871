import random

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Sampler


class Dealer(Sampler):
    def __init__(self, count, seed):
        self.count, self.seed, self.epoch = count, seed, 0

    def __len__(self):
        return self.count // dist.get_world_size()

    def __iter__(self):
        cards = list(range(self.count))
        random.Random(self.seed + dist.get_rank()).shuffle(cards)  # <-- DDP204
        return iter(cards[dist.get_rank() :: dist.get_world_size()])


def fit(net, data):
    net = DDP(net)
    for batch in DataLoader(data, sampler=Dealer(len(data), 7)):
        net(batch).backward()
