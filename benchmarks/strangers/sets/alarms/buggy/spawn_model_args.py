"""Regression with a choice of error function. Model and data are made once and handed to the workers."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Regressor(nn.Module):
    def __init__(self, loss="huber", delta=0.5):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 24), nn.Softplus(), nn.Linear(24, 1))
        if loss == "huber":
            self.fn_error = lambda a, b: nn.functional.huber_loss(a, b, delta=delta)
        else:
            self.fn_error = nn.functional.mse_loss

    def forward(self, x, y):
        return self.fn_error(self.net(x).squeeze(1), y)


class Trainer:
    def __init__(self, num_processes=2, max_epochs=2):
        self.num_processes, self.max_epochs = num_processes, max_epochs
        self.port = self._free_port()

    @staticmethod
    def _free_port():
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def fit(self, model, dataset):
        mp.spawn(self.ddp_train, nprocs=self.num_processes, args=(model, dataset))

    def ddp_train(self, process_idx, model, dataset):
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(self.port)
        dist.init_process_group("gloo", rank=process_idx, world_size=self.num_processes)
        self.run_epochs(process_idx, model, dataset)
        dist.destroy_process_group()

    def run_epochs(self, process_idx, model, dataset):
        sampler = DistributedSampler(dataset)
        loader = DataLoader(dataset, batch_size=16, sampler=sampler)
        ddp = DistributedDataParallel(model)
        opt = torch.optim.Adam(ddp.parameters(), lr=1e-2)
        for epoch in range(self.max_epochs):
            sampler.set_epoch(epoch)
            for x, y in loader:
                loss = ddp(x, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
            if process_idx == 0:
                print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


def make_data(n=128):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, 5, generator=g)
    return TensorDataset(x, x.sin().sum(1))


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer().fit(Regressor(loss="huber"), make_data())
