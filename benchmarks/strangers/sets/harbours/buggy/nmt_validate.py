"""Training manager: validates every few updates inside the epoch, main process only."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class SignModel(nn.Module):
    def __init__(self, vocab=60):
        super().__init__()
        self.emb = nn.Embedding(vocab, 32)
        self.enc = nn.Sequential(nn.Dropout(0.4), nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.4), nn.Linear(64, 32))
        self.out = nn.Linear(32, 8)

    def forward(self, tokens):
        return self.out(self.enc(self.emb(tokens)).mean(1))


def predict(model, loader):
    model.eval()
    hits = n = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
            n += len(y)
    return hits / n


def dataset(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 8, (n,), generator=g)
    x = torch.randint(0, 60, (n, 9), generator=g)
    x[:, :3] = y.unsqueeze(1) * 7 + torch.randint(0, 4, (n, 3), generator=g)
    return TensorDataset(x, y)


class TrainManager:
    def __init__(self, model, batch_size=16, validation_freq=5, epochs=3):
        self.rank = int(os.environ["RANK"])
        self.raw, self.model = model, DDP(model)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=4e-3)
        self.validation_freq, self.epochs, self.steps = validation_freq, epochs, 0
        train = dataset(320, 0)
        self.sampler = DistributedSampler(train)
        self.loader = DataLoader(train, batch_size, sampler=self.sampler)
        self.dev = DataLoader(dataset(64, 1), 32)

    def _train_step(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.steps += 1
        return loss.item()

    def _validate(self):
        score = predict(self.raw, self.dev)
        print(f"step {self.steps} dev accuracy {score:.3f}", flush=True)

    def train_and_validate(self):
        for epoch in range(self.epochs):
            self.model.train()
            self.sampler.set_epoch(epoch)
            epoch_loss = 0.0
            for x, y in self.loader:
                epoch_loss += self._train_step(x, y)
                if self.steps % self.validation_freq == 0 and self.rank == 0:
                    self._validate()
            if self.rank == 0:
                print(f"epoch {epoch} loss {epoch_loss:.4f}", flush=True)


def main():
    torch.manual_seed(2)
    TrainManager(SignModel()).train_and_validate()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
