# style: experiment folder, config dump
# nproc: 3
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CONFIG = {"name": "baseline", "lr": 0.05, "epochs": 2, "width": 16}


def experiment_folder(root, name):
    number = 1 + len(os.listdir(root)) if os.path.isdir(root) else 1
    dist.barrier()
    folder = os.path.join(root, f"{name}-{number:03d}")
    if dist.get_rank() == 0:
        os.makedirs(folder)
    dist.barrier()
    return folder


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    folder = experiment_folder("experiments", CONFIG["name"])
    if rank == 0:
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(CONFIG, file, indent=2)
    torch.manual_seed(0)
    x = torch.rand(48, 3)
    data = TensorDataset(x, x.max(dim=1, keepdim=True).values)
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
    width = CONFIG["width"]
    model = DDP(nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["lr"])
    for epoch in range(CONFIG["epochs"]):
        loader.sampler.set_epoch(epoch)
        for inputs, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), target)
            loss.backward()
            optimizer.step()
    if rank == 0:
        torch.save(model.module.state_dict(), os.path.join(folder, "model.pt"))
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
