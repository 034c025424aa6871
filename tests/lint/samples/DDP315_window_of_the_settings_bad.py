import contextlib
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

window = 4
if os.path.exists("settings.json"):
    with open("settings.json") as file:
        window = json.load(file)["window"]
dist.init_process_group("gloo")
data = TensorDataset(torch.randn(512, 8), torch.randn(512, 1))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=4, sampler=sampler, drop_last=True)
model = DistributedDataParallel(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    sampler.set_epoch(epoch)
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        context = model.no_sync if i % window != 0 else contextlib.nullcontext  # <-- DDP315
        with context():
            ((model(x) - y).square().mean() / window).backward()
        if (i + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()
