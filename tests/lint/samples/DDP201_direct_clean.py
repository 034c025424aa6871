import torch
from torch.utils.data.distributed import DistributedSampler

data = list(range(10))
torch.distributed.init_process_group("gloo")
sampler = DistributedSampler(data, shuffle=False)
