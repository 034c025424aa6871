# style: fine-tuning with low-rank adapters, dictionary config
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CONFIG = {"epochs": 2, "batch_size": 8, "lr": 1e-2, "classes": 5, "rank": 2}


class Adapted(nn.Module):
    """A linear layer with a trainable low-rank correction."""

    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


class Backbone(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU())
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        return self.head(self.features(x))


def pretrained(classes):
    torch.manual_seed(99)
    return Backbone(classes)


def loaders(config):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(96, 16, generator=generator)
    y = torch.randint(0, config["classes"], (96,), generator=generator)
    dataset = TensorDataset(x, y)
    sampler = DistributedSampler(dataset, shuffle=True)
    return DataLoader(dataset, batch_size=config["batch_size"], sampler=sampler), sampler


def train(config):
    net = pretrained(config["classes"])
    model = DDP(net)
    net.features[2] = Adapted(net.features[2], config["rank"])  # <-- DDP305
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    loss_fn = nn.CrossEntropyLoss()
    loader, sampler = loaders(config)
    for epoch in range(config["epochs"]):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print("epoch", epoch, "loss", round(loss.item(), 4))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    try:
        train(CONFIG)
    finally:
        dist.destroy_process_group()
