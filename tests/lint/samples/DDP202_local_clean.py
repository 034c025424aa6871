import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Job:
    def __init__(self):
        dist.init_process_group("nccl")
        self.world = dist.get_world_size()
        self.device = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(self.device)

    def loader(self, data):
        self.order = DistributedSampler(data, num_replicas=self.world, rank=dist.get_rank())
        return DataLoader(data, 16, sampler=self.order, drop_last=True)

    def learn(self, data):
        loader = self.loader(data)
        net = torch.nn.Linear(8, 1).to(self.device)
        model = DistributedDataParallel(net, device_ids=[self.device])
        steps = torch.optim.SGD(model.parameters(), 0.1)
        for epoch in range(5):
            self.order.set_epoch(epoch)
            for rows in loader:
                steps.zero_grad()
                model(rows.to(self.device)).mean().backward()
                steps.step()


if __name__ == "__main__":
    Job().learn(torch.load("rows.pt"))
