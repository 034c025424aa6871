"""Two-stage training: the trunk learns for a while, and then only the classifier goes on."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

STEPS_OF_THE_TRUNK = 4


class Classifier(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, width))
        self.classes = nn.Linear(width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classes(F.relu(self.trunk(x)))


def readings(count: int = 96) -> TensorDataset:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(count, 6, generator=generator)
    return TensorDataset(x, x[:, :3].argmax(dim=1))


def settle(model: nn.Module) -> None:
    for parameter in model.trunk.parameters():
        parameter.requires_grad = False


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(int(os.environ.get("RANK", 0)))
    data = readings()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = 0
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            if step == STEPS_OF_THE_TRUNK:
                settle(model.module)
                model = DistributedDataParallel(model.module)
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
