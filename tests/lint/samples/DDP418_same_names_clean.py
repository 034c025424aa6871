"""Errors of depth maps, of which each rank leaves out those that show too little."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def errors(found, wanted):
    apart = found - wanted
    return {"mean": apart.abs().mean(), "squared": apart.square().mean()}


def evaluate(net, data):
    loader = DataLoader(data, batch_size=1, sampler=DistributedSampler(data, shuffle=False))
    totals = {"mean": torch.zeros(1).cuda(), "squared": torch.zeros(1).cuda()}
    worst = {"mean": torch.zeros(1).cuda(), "squared": torch.zeros(1).cuda()}
    for image, depth, shown in loader:
        with torch.no_grad():
            guess = net(image)
        shown = shown == 1
        if shown.sum() < 10:
            continue
        found = errors(guess[shown], depth[shown])
        for name in totals.keys():
            totals[name] += found[name]
        for name, so_far in worst.items():
            worst[name] = torch.maximum(so_far, found[name])
    for name in totals.keys():
        dist.reduce(totals[name], dst=0)
    for name in sorted(worst):
        dist.reduce(worst[name], dst=0, op=dist.ReduceOp.MAX)
    return totals, worst


def main(net, data):
    dist.init_process_group("nccl")
    print(evaluate(DDP(net.cuda()), data))
