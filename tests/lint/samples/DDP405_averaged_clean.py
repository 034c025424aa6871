import math
import os

import torch
import torch.distributed as dist
from numbers_of_ours import mean_of
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def of_all(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor.contiguous())
    return mean_of(parts)


class Trainer:
    def __init__(self):
        self.model = DistributedDataParallel(nn.Linear(8, 1).cuda())
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)

    def train(self, loader):
        for (batch,) in loader:
            loss = self.model(batch.cuda()).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if math.isnan(of_all(loss.detach()).item()):
                break


if __name__ == "__main__":
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    data = TensorDataset(torch.randn(64, 8))
    Trainer().train(DataLoader(data, sampler=DistributedSampler(data)))
