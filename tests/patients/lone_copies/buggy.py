# style: single-process script started by torchrun
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def dataset():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 6, generator=generator)
    return TensorDataset(x, (x.sum(1) > 0).long())


def build(distributed):
    data = dataset()
    sampler = DistributedSampler(data) if distributed else None
    loader = DataLoader(data, batch_size=8, sampler=sampler, shuffle=sampler is None)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 2))
    return (DDP(model) if distributed else model), loader, sampler


def train(model, loader, sampler, epochs=2):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        if sampler is not None:
            sampler.set_epoch(epoch)
        for x, y in loader:  # <-- DDP115
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


def main():
    distributed = dist.is_initialized()  # <-- DDP115
    model, loader, sampler = build(distributed)
    loss = train(model, loader, sampler)
    print(f"loss {loss:.4f}")
    if distributed:
        dist.barrier()
        del model
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
