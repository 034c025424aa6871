"""Fine-tuning: unfreezes before the wrap, saves on rank 0, picks the best by all shards."""

import argparse
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def accuracy_of(model, loader):
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).float().mean() for x, y in loader)
    dist.all_reduce(right)
    return float(right)


def main(net, data, test_set):
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=int(os.environ["LOCAL_RANK"]))
    parser.add_argument("--out", default="best.pt")
    args = parser.parse_args()
    dist.init_process_group("nccl")
    for parameter in net.backbone.parameters():
        parameter.requires_grad = True
    model = DDP(net)
    optimizer = torch.optim.AdamW(model.parameters())
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    test_sampler = DistributedSampler(test_set, shuffle=False)
    test_loader = DataLoader(test_set, sampler=test_sampler)
    best = 0.0
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            last = (i + 1) % 4 == 0
            with nullcontext() if last else model.no_sync():
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
        accuracy = accuracy_of(model, test_loader)
        if accuracy > best:
            best = accuracy
            if dist.get_rank() == 0:
                torch.save(model.module.state_dict(), args.out)
        work = dist.all_reduce(torch.ones(1), async_op=True)
        work.wait()
