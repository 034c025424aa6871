"""Options in any order, by which one process is to be one of several, or alone."""

import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def work(place, options):
    samples = TensorDataset(torch.randn(64, 4))
    net, sampler = nn.Linear(4, 1), None
    if options.several:
        dist.init_process_group(
            "gloo", init_method="file:///tmp/met", rank=place, world_size=options.ranks
        )
        sampler = DistributedSampler(samples)
        net = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        if options.several:
            sampler.set_epoch(epoch)
        for (batch,) in DataLoader(samples, batch_size=8, sampler=sampler):
            loss = net(batch).square().mean()
            learns = loss.isfinite()
            if options.several:
                learns = learns.int()
                dist.all_reduce(learns, dist.ReduceOp.MIN)
            optimizer.zero_grad()
            if learns:
                loss.backward()
                optimizer.step()
    if options.several:
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--several", action="store_true")
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_intermixed_args()
    if options.several:
        mp.spawn(work, args=(options,), nprocs=options.ranks)
    else:
        work(0, options)


if __name__ == "__main__":
    main()
