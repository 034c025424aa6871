import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Damper:
    def __init__(self, optimizer, limit=5.0):
        self.optimizer, self.limit = optimizer, limit

    def look_at(self, loss):
        if loss > self.limit:
            for group in self.optimizer.param_groups:
                group["lr"] *= 0.5


def learn(data, device):
    dist.init_process_group("nccl")
    order = DistributedSampler(data)
    loader = DataLoader(data, 16, sampler=order, drop_last=True)
    model = DistributedDataParallel(nn.Linear(8, 1).to(device), device_ids=[device])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    damper = Damper(optimizer)
    steps = 0
    for epoch in range(5):
        order.set_epoch(epoch)
        for rows in loader:
            optimizer.zero_grad()
            steps += 1
            if steps < 100:
                for group in optimizer.param_groups:
                    group["lr"] = 0.1 * steps / 100
            loss = model(rows.to(device)).square().mean()
            loss.backward()
            seen = loss.detach().clone()
            dist.all_reduce(seen, op=dist.ReduceOp.AVG)
            damper.look_at(seen.item())
            optimizer.step()
