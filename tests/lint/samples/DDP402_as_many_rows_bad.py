"""What is in a batch is a rank's own, and so is what it has counted of that."""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main(size):
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    data = TensorDataset(torch.rand(64, 4))
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=size, sampler=sampler)
    net = DDP(torch.nn.Linear(4, 1).to(device))
    optimizer = torch.optim.Adam(net.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for step, batch in enumerate(loader):
        x = batch[0].to(device)
        optimizer.zero_grad()
        scaler.scale(net(x).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()
        if x.sum() > size:  # <-- DDP402
            dist.barrier()
        if step > 17:
            dist.barrier()


if __name__ == "__main__":
    main(int(sys.argv[1]))
