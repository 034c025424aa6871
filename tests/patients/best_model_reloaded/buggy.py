# style: Trainer with best-checkpoint reload for testing
# nproc: 3
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Recommender(nn.Module):
    def __init__(self, items=60_000, width=96):
        super().__init__()
        self.table = nn.Embedding(items, width)
        self.table.weight.requires_grad_(False)
        self.score = nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, items):
        return self.score(self.table(items)).squeeze(-1)


class Trainer:
    def __init__(self, folder="checkpoints"):
        self.rank = dist.get_rank()
        self.path = os.path.join(folder, "best.pt")
        os.makedirs(folder, exist_ok=True)
        torch.manual_seed(0)
        self.model = DDP(Recommender())
        weights = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(weights, lr=1e-2)
        items = torch.arange(48) * 11
        data = TensorDataset(items, (items % 2).float())
        self.sampler = DistributedSampler(data)
        self.loader = DataLoader(data, batch_size=8, sampler=self.sampler)
        self.best = float("inf")

    def train_epoch(self, epoch):
        self.sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for items, labels in self.loader:
            self.optimizer.zero_grad()
            logits = self.model(items)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, labels)
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        return total.item()

    def fit(self, epochs):
        for epoch in range(epochs):
            loss = self.train_epoch(epoch)
            if loss < self.best:
                self.best = loss
                if self.rank == 0:
                    torch.save(self.model.module.state_dict(), self.path)  # <-- DDP501

    def test(self):
        state = torch.load(self.path, map_location="cpu")  # <-- DDP501
        self.model.module.load_state_dict(state)
        self.model.eval()
        with torch.no_grad():
            return self.model(torch.arange(10)).mean().item()


def main():
    dist.init_process_group("gloo")
    trainer = Trainer()
    trainer.fit(epochs=2)
    print(f"rank {trainer.rank}: test score {trainer.test():.4f}")  # <-- DDP501
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
