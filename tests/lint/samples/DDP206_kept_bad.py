import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset


dist.init_process_group("gloo")
names = [f"case-{number}" for number in range(90)]
kept = [number for number, name in enumerate(names) if hash(name) % 5]  # <-- DDP206
data = Subset(torch.zeros(90, 4), kept)
sampler = DistributedSampler(data)
net = DistributedDataParallel(torch.nn.Linear(4, 4))
for epoch in range(3):
    sampler.set_epoch(epoch)
    for x in DataLoader(data, sampler=sampler):
        net(x).sum().backward()
