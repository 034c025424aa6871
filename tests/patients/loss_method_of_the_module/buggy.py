# style: Trainer class, the model computes its own loss in a method
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Classifier(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, width), nn.GELU(), nn.LayerNorm(width))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.encoder(x))

    def training_loss(self, x, y):
        return nn.functional.cross_entropy(self(x), y, label_smoothing=0.1)


class Trainer:
    def __init__(self, model, loader, lr):
        self.model = DDP(model)
        self.loader = loader
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.is_main = dist.get_rank() == 0

    def fit(self, epochs):
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            total = self._epoch()
            if self.is_main:
                print(f"epoch {epoch} loss {total:.4f}", flush=True)

    def _epoch(self):
        total = 0.0
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = self.model.module.training_loss(x, y)  # <-- DDP303
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.loader)


def build_dataset(size):
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(size, 12, generator=generator)
    y = (x[:, :3].sum(dim=1) > 0).long()
    return TensorDataset(x, y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(int(os.environ.get("SEED", "0")))
    dataset = build_dataset(128)
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
    Trainer(Classifier(16, 2), loader, args.lr).fit(args.epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
