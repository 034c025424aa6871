import torch
from torch.utils.data.distributed import DistributedSampler

data = list(range(10))
sampler = DistributedSampler(data, shuffle=False)  # <-- DDP201
torch.distributed.init_process_group("gloo")
