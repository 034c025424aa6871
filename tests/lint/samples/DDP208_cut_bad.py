import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main(args):
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    held = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True, seed=args.seed)
    valid_sampler = DistributedSampler(  # <-- DDP208
        held, num_replicas=world, rank=rank, shuffle=True, drop_last=False, seed=args.seed
    )
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    valid_loader = DataLoader(held, batch_size=4, sampler=valid_sampler)
    model = DDP(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            loss = ((model(x) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        total = torch.zeros(2)
        with torch.no_grad():
            for x, y in valid_loader:
                total += torch.tensor([((model.module(x) - y) ** 2).sum(), len(x)])
        dist.all_reduce(total)
        print(total[0] / total[1])
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
