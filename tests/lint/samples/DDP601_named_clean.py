from collections import defaultdict

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(6, 6))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = defaultdict(list)
for _ in range(200):
    loss = model(torch.randn(8, 6)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen["loss"].append(loss.item())
dist.destroy_process_group()
