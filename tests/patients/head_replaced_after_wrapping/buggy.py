# style: transfer learning, helper that builds and adapts the model
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CLASSES = 5


class Backbone(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU())
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        return self.head(self.features(x))


def adapt(model, classes):
    model.head = nn.Linear(model.head.in_features, classes)  # <-- DDP305
    return model


def build():
    torch.manual_seed(99)
    model = DDP(Backbone(classes=10))
    adapt(model.module, CLASSES)
    return model


def make_loader():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 16, generator=generator)
    y = torch.randint(0, CLASSES, (64,), generator=generator)
    dataset = TensorDataset(x, y)
    return DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))


def train(epochs=2):
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    loss_fn = nn.CrossEntropyLoss()
    loader = make_loader()
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print("epoch", epoch, "loss", round(loss.item(), 4))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()
