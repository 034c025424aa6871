import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class ToneDataset(Dataset):
    """Pairs of (mel-like frame, waveform chunk)."""

    def __init__(self, n=240, hop=32):
        g = torch.Generator().manual_seed(5)
        self.freq = torch.rand(n, 1, generator=g) * 0.8 + 0.1
        self.t = torch.arange(hop).float()

    def __len__(self):
        return len(self.freq)

    def __getitem__(self, i):
        f = self.freq[i]
        mel = torch.exp(-((torch.linspace(0, 1, 16) - f) ** 2) / 0.02)
        return mel, torch.sin(f * self.t)


class Generator(nn.Module):
    def __init__(self, n_mels=16, hop=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_mels, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2),
            nn.Linear(64, hop), nn.Tanh(),
        )

    def forward(self, mel):
        return self.net(mel)


class Trainer:
    def __init__(self, config, model, optimizer, data_loader, sampler):
        self.config = config
        self.model = model
        self.optimizer = optimizer
        self.data_loader = data_loader
        self.sampler = sampler
        self.steps = 0
        self.epochs = 0
        self.finish_train = False
        self.total_train_loss = 0.0

    def run(self):
        while not self.finish_train:
            self._train_epoch()

    def _train_step(self, batch):
        mel, wav = batch
        loss = nn.functional.l1_loss(self.model(mel), wav)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.total_train_loss += loss.item()
        self.steps += 1
        if self.steps >= self.config.train_max_steps:
            self.finish_train = True

    def _train_epoch(self):
        train_steps = 0
        for train_steps, batch in enumerate(self.data_loader, 1):
            self._train_step(batch)
            if self.finish_train:
                break
        self.epochs += 1
        if self.config.rank == 0:
            print(f"(Steps: {self.steps}) Finished {self.epochs} epoch training "
                  f"({train_steps} steps per epoch), loss {self.total_train_loss / train_steps:.4f}", flush=True)
        self.total_train_loss = 0.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-max-steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=2e-3)
    config = parser.parse_args()

    dist.init_process_group("gloo")
    config.rank = dist.get_rank()
    torch.manual_seed(777)

    dataset = ToneDataset()
    sampler = DistributedSampler(dataset, shuffle=True)
    data_loader = DataLoader(dataset, batch_size=config.batch_size, sampler=sampler)
    model = DistributedDataParallel(Generator())
    optimizer = torch.optim.RAdam(model.parameters(), lr=config.lr)
    Trainer(config, model, optimizer, data_loader, sampler).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
