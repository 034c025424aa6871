import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()
held = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
trained = TensorDataset(torch.randn(256, 4), torch.randn(256, 1))
sampler = DistributedSampler(trained)
batches = DataLoader(trained, batch_size=8, sampler=sampler)
parts = os.environ["PARTS"].split(",")
kept = {
    part: DataLoader(held, batch_size=8, sampler=DistributedSampler(held, shuffle=False))
    for part in parts
}
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def validate():
    logs = {}
    with torch.no_grad():
        for part in parts:
            for x, y in kept[part]:
                error = (model(x) - y).square().mean()
                logs[f"{part}/error"] = logs.get(f"{part}/error", 0) + error
        for name, value in logs.items():
            logs[name] = value / len(kept[parts[0]])
        logs["error"] = 0
        for part in parts:
            logs["error"] += logs[f"{part}/error"] / len(parts)
    if dist.is_initialized():
        for name in sorted(logs.keys()):
            dist.all_reduce(logs[name].detach())
            logs[name] = float(logs[name] / dist.get_world_size())
    return logs


best = 1e6
for epoch in range(10):
    sampler.set_epoch(epoch)
    for x, y in batches:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
    if epoch == 9:
        logs = validate()
    else:
        logs = validate()
    if rank == 0:
        torch.save(model.module.state_dict(), "last.pt")
        if logs["error"] <= best:
            torch.save(model.module.state_dict(), "best.pt")
            best = logs["error"]
