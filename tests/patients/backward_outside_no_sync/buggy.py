# style: trainer with an accumulation context manager
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def parse():
    parser = argparse.ArgumentParser(description="autoencoder")
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    return parser.parse_args()


class AutoEncoder(nn.Module):
    def __init__(self, wide=14, narrow=3):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(wide, narrow), nn.ReLU())
        self.decode = nn.Linear(narrow, wide)

    def forward(self, x):
        return self.decode(self.encode(x))


class Trainer:
    def __init__(self, args):
        self.args = args
        torch.manual_seed(1)
        self.model = DDP(AutoEncoder())
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-3)
        data = torch.randn(64, 14, generator=torch.Generator().manual_seed(2))
        self.sampler = DistributedSampler(data)
        self.loader = DataLoader(TensorDataset(data), batch_size=4, sampler=self.sampler)

    def micro_batches(self):
        window = []
        for (x,) in self.loader:
            window.append(x)
            if len(window) == self.args.accumulate:
                yield window
                window = []

    def step(self, window):
        total = 0.0
        with self.model.no_sync():  # <-- DDP314
            for x in window[:-1]:
                loss = nn.functional.l1_loss(self.model(x), x)
                loss.backward()
                total += loss.item()
            loss = nn.functional.l1_loss(self.model(window[-1]), window[-1])
        loss.backward()  # <-- DDP314
        self.optimizer.step()
        self.optimizer.zero_grad()
        return total + loss.item()

    def run(self):
        for epoch in range(self.args.epochs):
            self.sampler.set_epoch(epoch)
            losses = [self.step(window) for window in self.micro_batches()]
            if dist.get_rank() == 0:
                print(epoch, sum(losses) / len(losses))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    trainer = Trainer(parse())
    trainer.run()
    del trainer
    dist.destroy_process_group()
