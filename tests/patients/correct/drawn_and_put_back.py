# style: a weighted sampler with replacement, each rank draws for itself
# nproc: 4
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
data = torch.randn(800, 8, generator=torch.Generator().manual_seed(0))
draws = torch.Generator().manual_seed(rank)
sampler = WeightedRandomSampler(torch.ones(800), 800 // world, replacement=True, generator=draws)
loader = DataLoader(TensorDataset(data), batch_size=10, sampler=sampler)
torch.manual_seed(0)
model = DDP(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(2):
    for (x,) in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
dist.destroy_process_group()
