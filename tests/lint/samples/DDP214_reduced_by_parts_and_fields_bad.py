import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()
held = TensorDataset(torch.randn(64, 4), torch.randn(64, 3))
trained = TensorDataset(torch.randn(256, 4), torch.randn(256, 3))
sampler = DistributedSampler(trained)
batches = DataLoader(trained, batch_size=8, sampler=sampler)
parts = os.environ["PARTS"].split(",")
fields = os.environ["FIELDS"].split(",")
kept = {
    part: DataLoader(held, batch_size=8, sampler=DistributedSampler(held, shuffle=False))
    for part in parts
}
model = DistributedDataParallel(nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def validate():
    logs = {}
    with torch.no_grad():
        for part in parts:
            for x, y in kept[part]:
                off = (model(x) - y).abs()
                logs[f"{part}/error"] = logs.get(f"{part}/error", 0) + off.square().mean()
                logs[f"{part}/off"] = logs.get(f"{part}/off", 0) + off.mean()
                logs[f"{part}/worst"] = logs.get(f"{part}/worst", 0) + off.max()
                for i, field in enumerate(fields):
                    name = f"{part}/{field}_error"
                    logs[name] = logs.get(name, 0) + off[:, i].square().mean()
                    name = f"{part}/{field}_off"
                    logs[name] = logs.get(name, 0) + off[:, i].mean()
        for name, value in logs.items():
            logs[name] = value / len(kept[parts[0]])
        logs["error"] = 0
        for part in parts:
            logs["error"] += logs[f"{part}/error"] / len(parts)
    if dist.is_initialized():
        for name in sorted(logs.keys()):
            logs[name] = float(logs[name] / len(parts))
            if name.endswith("_error"):
                logs[name] = logs[name] ** 0.5
    return logs


best = 1e6
for epoch in range(10):
    sampler.set_epoch(epoch)
    for x, y in batches:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
    logs = validate()
    if rank == 0:
        torch.save(model.module.state_dict(), "last.pt")
        if logs["error"] <= best:  # <-- DDP214
            torch.save(model.module.state_dict(), "best.pt")
            best = logs["error"]
