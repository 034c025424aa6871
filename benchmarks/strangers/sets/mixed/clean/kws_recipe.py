"""Keyword-spotting recipe: a Brain object owns the modules and a counter decides how many epochs are run."""
import enum
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Stage(enum.Enum):
    TRAIN = 1
    VALID = 2


def if_main_process():
    return int(os.environ["RANK"]) == 0


class EpochCounterWithStopper:
    def __init__(self, limit, limit_warmup, limit_to_stop):
        self.current, self.limit = 0, limit
        self.limit_warmup, self.limit_to_stop = limit_warmup, limit_to_stop
        self.best, self.best_epoch, self.should_stop = float("inf"), 0, False

    def __iter__(self):
        return self

    def __next__(self):
        if self.should_stop or self.current >= self.limit:
            raise StopIteration
        self.current += 1
        return self.current

    def update_metric(self, value):
        if self.current <= self.limit_warmup:
            return
        if value < self.best - 1e-3:
            self.best, self.best_epoch = value, self.current
        elif self.current - self.best_epoch >= self.limit_to_stop:
            self.should_stop = True


class Brain:
    def __init__(self, modules, lr, counter):
        self.modules = DistributedDataParallel(modules)
        self.optimizer = torch.optim.Adam(self.modules.parameters(), lr=lr)
        self.epoch_counter = counter

    def fit_batch(self, feats, labels):
        loss = nn.functional.cross_entropy(self.modules(feats), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def evaluate_set(self, loader):
        totals = torch.zeros(2)
        for feats, labels in loader:
            out = self.modules.module(feats)
            totals += torch.tensor([nn.functional.cross_entropy(out, labels, reduction="sum"), float(len(labels))])
        dist.all_reduce(totals)
        return (totals[0] / totals[1]).item()

    def on_stage_end(self, stage, stage_loss, epoch):
        if stage is not Stage.VALID:
            return
        if if_main_process():
            print(f"epoch {epoch}: valid loss {stage_loss:.4f}", flush=True)
        self.epoch_counter.update_metric(stage_loss)

    def fit(self, train_loader, valid_loader):
        for epoch in self.epoch_counter:
            train_loader.sampler.set_epoch(epoch)
            self.modules.train()
            for feats, labels in train_loader:
                self.fit_batch(feats, labels)
            self.modules.eval()
            valid_loss = self.evaluate_set(valid_loader)
            self.on_stage_end(Stage.VALID, valid_loss, epoch)
        dist.barrier()


def recipe():
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1234)
    feats, labels = torch.randn(128, 16), torch.randint(0, 4, (128,))
    train = TensorDataset(feats[:96], labels[:96])
    valid = TensorDataset(feats[96:], labels[96:])
    train_loader = DataLoader(train, batch_size=8, sampler=DistributedSampler(train, seed=1234))
    valid_loader = DataLoader(Subset(valid, range(rank, len(valid), world)), batch_size=8)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    brain = Brain(net, 0.02, EpochCounterWithStopper(limit=12, limit_warmup=1, limit_to_stop=2))
    brain.fit(train_loader, valid_loader)
    if if_main_process():
        print(f"finished after {brain.epoch_counter.current} epochs", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    recipe()
    dist.destroy_process_group()
