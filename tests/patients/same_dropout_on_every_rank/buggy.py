# style: seed_everything, dropout, functions
import os
import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed % 2**32)
    os.environ["PYTHONHASHSEED"] = str(seed)
    torch.manual_seed(seed)  # <-- DDP205


def build_model():
    return nn.Sequential(
        nn.Linear(11, 32), nn.ReLU(), nn.Dropout(0.4), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 3)
    )


def build_loader(seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(160, 11, generator=generator)
    y = x[:, :3].argmax(dim=1)
    dataset = TensorDataset(x, y)
    sampler = DistributedSampler(dataset, seed=seed)
    return DataLoader(dataset, batch_size=8, sampler=sampler)


def run_epoch(model, loader, optimizer, criterion):
    correct = seen = 0
    for x, y in loader:
        logits = model(x)
        optimizer.zero_grad()
        criterion(logits, y).backward()
        optimizer.step()
        correct += (logits.argmax(dim=1) == y).sum().item()
        seen += len(y)
    counts = torch.tensor([correct, seen])
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


def main(seed=3407):
    seed_everything(seed)
    model = DDP(build_model())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    loader = build_loader(seed)
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        accuracy = run_epoch(model, loader, optimizer, criterion)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
