# style: functions, seed_everything helper
# nproc: 3
import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SEED = 42


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def get_data():
    rng = np.random.RandomState(SEED)
    x = rng.randn(90, 5).astype("float32")
    y = (x @ rng.randn(5, 1)).astype("float32")
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


def get_loader(dataset, seed):
    sampler = DistributedSampler(dataset, shuffle=True, seed=seed)
    return DataLoader(dataset, batch_size=10, sampler=sampler, num_workers=0)


def main():
    dist.init_process_group("gloo")
    seed_everything(SEED)
    model = DistributedDataParallel(nn.Linear(5, 1))
    seed = SEED + dist.get_rank()
    seed_everything(seed)
    loader = get_loader(get_data(), SEED)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            x = x + 0.01 * torch.randn_like(x)
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        scheduler.step()
        if dist.get_rank() == 0:
            print(epoch, loss.item())
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
