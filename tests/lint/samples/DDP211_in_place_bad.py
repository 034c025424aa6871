import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def over_all(value):
    value = value.reshape(1)
    dist.reduce(value, dst=0)
    value = value / dist.get_world_size()  # <-- DDP211
    dist.broadcast(value, src=0)
    return value


def objective(model, x, y):
    """Summed over the samples: how large a batch is, the rate knows."""
    return over_all(F.cross_entropy(model(x), y, reduction="sum"))


def fit(model, data, epochs):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = objective(model, x, y)
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(epoch, loss.item())


if __name__ == "__main__":
    dist.init_process_group("gloo")
    points = torch.randn(512, 8)
    labels = (points.sum(1) > 0).long()
    fit(DDP(torch.nn.Linear(8, 2)), torch.utils.data.TensorDataset(points, labels), 5)
    dist.destroy_process_group()
