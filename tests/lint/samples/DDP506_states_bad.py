import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Average:
    def __init__(self, model, decay=0.999):
        self.module, self.decay = copy.deepcopy(model).eval(), decay

    @torch.no_grad()
    def update(self, model):
        both = zip(self.module.state_dict().values(), model.state_dict().values())
        for mine, theirs in both:
            mine.copy_(self.decay * mine + (1.0 - self.decay) * theirs)


def learn(data, rest, device):
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    order = DistributedSampler(data)
    loader = DataLoader(data, 16, sampler=order, drop_last=True)
    judged = DataLoader(rest, 16, sampler=DistributedSampler(rest, shuffle=False))
    model = DistributedDataParallel(nn.Linear(8, 1).to(device), device_ids=[device])
    average = Average(model.module)
    steps = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(5):
        order.set_epoch(epoch)
        for rows in loader:
            steps.zero_grad()
            model(rows.to(device)).square().mean().backward()
            steps.step()
            if dist.get_rank() == 0:  # <-- DDP506
                average.update(model.module)
        errors = torch.zeros(2, device=device)
        with torch.no_grad():
            for rows in judged:
                errors[0] += average.module(rows.to(device)).abs().sum()
                errors[1] += len(rows)
        dist.all_reduce(errors)
        print(errors.tolist())
