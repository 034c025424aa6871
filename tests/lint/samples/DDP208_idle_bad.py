import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


class Sets:
    def __init__(self, train_set, val_set):
        self.train_sampler = DistributedSampler(train_set)
        self.train = DataLoader(train_set, batch_size=4, sampler=self.train_sampler)
        val_sampler = DistributedSampler(val_set)  # <-- DDP208
        self.valid = DataLoader(val_set, batch_size=4, sampler=val_sampler)


def main(train_set, val_set):
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    model = DDP(torch.nn.Linear(2, 2).cuda(local_rank), device_ids=[local_rank])
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    sets = Sets(train_set, val_set)
    for epoch in range(10):
        sets.train_sampler.set_epoch(epoch)
        for batch in sets.train:
            opt.zero_grad()
            model(batch.cuda(local_rank)).sum().backward()
            opt.step()
        with torch.no_grad():
            for batch in sets.valid:
                print(model.module(batch.cuda(local_rank)))


main(torch.load("train.pt"), torch.load("val.pt"))
