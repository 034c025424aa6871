# style: Trainer class, dataclass config
# nproc: 2
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


@dataclass
class Config:
    epochs: int = 2
    batch_size: int = 8
    lr: float = 0.05
    samples: int = 64


class Blobs(Dataset):
    def __init__(self, n, split):
        generator = torch.Generator().manual_seed(0 if split == "train" else 1)
        self.centers = torch.randn(3, 6, generator=generator)
        self.labels = torch.arange(n) % 3
        self.points = self.centers[self.labels] + 0.1 * torch.randn(n, 6, generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.points[i], self.labels[i]


class Trainer:
    def __init__(self, config):
        self.config = config
        self.rank = dist.get_rank()
        torch.manual_seed(0)
        self.model = DDP(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=config.lr)
        self.criterion = nn.CrossEntropyLoss()
        self.train_set = Blobs(config.samples, "train")
        self.sampler = None
        self.train_loader = self.make_loader(self.train_set)

    def make_loader(self, dataset):
        return DataLoader(dataset, batch_size=self.config.batch_size, shuffle=True)  # <-- DDP202

    def run_epoch(self, epoch):
        total = 0.0
        for points, labels in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(points), labels)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    def fit(self):
        for epoch in range(self.config.epochs):
            if self.sampler is not None:
                self.sampler.set_epoch(epoch)
            loss = self.run_epoch(epoch)
            if self.rank == 0:
                print(f"epoch {epoch} loss {loss:.3f}")


def main():
    dist.init_process_group("gloo")
    Trainer(Config()).fit()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
