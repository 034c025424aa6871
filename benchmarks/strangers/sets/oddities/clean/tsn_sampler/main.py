import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from buckets import AspectBuckets
from pictures import Pictures


def build(args):
    data = Pictures()
    sampler = AspectBuckets(data.shapes, args.batch, dist.get_rank(), dist.get_world_size(), seed=args.seed)
    torch.manual_seed(args.seed)
    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 4))
    return data, sampler, DDP(net)


def coverage(ids, total):
    lists = [None] * dist.get_world_size()
    dist.all_gather_object(lists, ids)
    return len(set().union(*lists)) / total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=5)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--epochs", type=int, default=4)
    args = p.parse_args()
    dist.init_process_group("gloo")
    data, sampler, net = build(args)
    loader = DataLoader(data, batch_sampler=sampler)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        ids = []
        for i, x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            ids += i.tolist()
        seen = coverage(ids, len(data))
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}, {100 * seen:.0f}% of the pictures used", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
