import os

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = DDP(torch.nn.Linear(2, 2).cuda(local_rank), device_ids=[local_rank])
    opt = torch.optim.SGD(model.parameters())
    data = TensorDataset(torch.rand(8, 2))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 4, sampler=sampler, drop_last=True)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for (batch,) in loader:
            noise = torch.from_numpy(np.random.rand(len(batch), 1))
            batch = batch[batch[:, 0] > 0.5].float() * 0.9 + noise
            if len(batch) > 2:  # <-- DDP307
                loss = model(batch).sum()
                opt.zero_grad()
                loss.backward()
                opt.step()


main()
