# style: functions, setup/cleanup
# nproc: 2
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def setup():
    dist.init_process_group(backend="gloo")
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def cleanup():
    dist.destroy_process_group()


def prepare(rank, world_size, batch_size=8, num_workers=0):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(64, 4, generator=generator)
    dataset = TensorDataset(features, features.sum(dim=1))
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank)
    return DataLoader(  # <-- DDP209
        dataset,
        batch_size=batch_size,
        num_workers=num_workers,
        shuffle=True,
        sampler=sampler,
    )


def demo(epochs):
    rank, world_size = setup()
    loader = prepare(rank, world_size)
    model = DDP(nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    loss_fn = nn.MSELoss()
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for features, target in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(features).squeeze(-1), target)
            loss.backward()
            optimizer.step()
        print(f"rank {rank} epoch {epoch} loss {loss.item():.3f}")
    cleanup()


if __name__ == "__main__":
    demo(epochs=2)
