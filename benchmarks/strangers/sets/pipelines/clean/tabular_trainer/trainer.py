import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from data import split


class Trainer:
    def __init__(self, cfg, callbacks=()):
        self.cfg, self.callbacks = cfg, list(callbacks)
        self.rank = dist.get_rank()
        self.should_stop = False
        net = nn.Sequential(nn.Linear(cfg.data.features, 64), nn.Tanh(), nn.Linear(64, 1))
        self.model = DistributedDataParallel(net)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.train_data = split(cfg.data, cfg.data.n_train, self.rank, 1)
        self.val_data = split(cfg.data, cfg.data.n_val, self.rank, 2)

    def call(self, name, *args):
        for cb in self.callbacks:
            getattr(cb, name)(self, *args)

    def fit(self):
        self.call("on_train_start")
        for self.epoch in range(self.cfg.max_epochs):
            self.train_epoch()
            self.call("on_validation_end", self.validate())
            if self.should_stop:
                break
        dist.barrier()
        self.call("on_train_end")

    def train_epoch(self):
        self.model.train()
        for x, y in zip(*(t.split(self.cfg.batch_size) for t in self.train_data)):
            self.optimizer.zero_grad()
            F.mse_loss(self.model(x), y).backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        x, y = self.val_data
        loss = F.mse_loss(self.model(x), y)
        dist.all_reduce(loss)
        loss /= dist.get_world_size()
        return {"val_loss": loss.item()}
