"""Fine-tuning: unfreezes after the wrap, saves on every rank, picks the best by one shard."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def accuracy_of(model, loader):
    with torch.no_grad():
        return sum(float((model(x).argmax(1) == y).float().mean()) for x, y in loader)


def main(net, data, test_set):
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)  # <-- DDP112
    parser.add_argument("--out", default="best.pt")
    args = parser.parse_args()
    dist.init_process_group("nccl")
    model = DDP(net)
    for parameter in model.module.backbone.parameters():
        parameter.requires_grad = True  # <-- DDP305
    optimizer = torch.optim.AdamW(model.parameters())
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    test_sampler = DistributedSampler(test_set)  # <-- DDP208
    test_loader = DataLoader(test_set, sampler=test_sampler)
    best = 0.0
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()  # <-- DDP304
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
            torch.cuda.empty_cache()  # <-- DDP602
        accuracy = accuracy_of(model, test_loader)
        if accuracy > best:  # <-- DDP214
            best = accuracy
            torch.save(model.module.state_dict(), args.out)  # <-- DDP502
        dist.all_reduce(torch.ones(1), async_op=True)  # <-- DDP414
