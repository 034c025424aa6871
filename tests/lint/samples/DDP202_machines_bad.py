import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

MACHINES, GPUS = 4, 2


def work(gpu, machine):
    rank = machine * GPUS + gpu
    dist.init_process_group("gloo", rank=rank, world_size=MACHINES * GPUS)
    data = TensorDataset(torch.randn(64, 3), torch.randn(64, 1))
    sampler = DistributedSampler(data, num_replicas=MACHINES * GPUS, rank=gpu)  # <-- DDP202
    net = DDP(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for rows, wanted in DataLoader(data, batch_size=4, sampler=sampler):
            optimizer.zero_grad()
            (net(rows) - wanted).pow(2).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    mp.spawn(work, args=(int(os.environ["MACHINE"]),), nprocs=GPUS)
