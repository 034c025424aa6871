"""Band translation for a small satellite, optimizer state kept in shards; the run resumes once.

    torchrun --nproc_per_node=2 satellite_bands.py
"""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def scenes(n=256):
    g = torch.Generator().manual_seed(44)
    x = torch.rand(n, 13, generator=g)
    y = torch.stack([x[:, :4].mean(1), (x[:, 7] - x[:, 3]) / (x[:, 7] + x[:, 3])], 1)
    return TensorDataset(x, y)


class Translator:
    def __init__(self):
        self.rank = dist.get_rank()
        data = scenes()
        self.sampler = DistributedSampler(data)
        self.loader = DataLoader(data, 16, sampler=self.sampler)
        self.net = DDP(nn.Sequential(nn.Linear(13, 40), nn.SiLU(), nn.Linear(40, 2)))
        self.opt = ZeroRedundancyOptimizer(self.net.parameters(), torch.optim.Adam, lr=4e-3)
        self.epoch = 0

    def train_epoch(self):
        self.sampler.set_epoch(self.epoch)
        for x, y in self.loader:
            self.opt.zero_grad()
            loss = nn.functional.mse_loss(self.net(x), y)
            loss.backward()
            self.opt.step()
        self.epoch += 1
        if self.rank == 0:
            print(f"epoch {self.epoch} mse {loss.item():.5f}")

    def save(self, path):
        self.opt.consolidate_state_dict(to=0)
        if self.rank == 0:
            torch.save({"net": self.net.module.state_dict(), "opt": self.opt.state_dict(), "epoch": self.epoch}, path)
        dist.barrier()

    def load(self, path):
        box = [torch.load(path, weights_only=True) if self.rank == 0 else None]
        dist.broadcast_object_list(box, src=0)
        self.net.module.load_state_dict(box[0]["net"])
        self.opt.load_state_dict(box[0]["opt"])
        self.epoch = box[0]["epoch"]


def main():
    path = os.path.join(tempfile.gettempdir(), f"bands_{os.getpid()}.pt")
    first = Translator()
    for _ in range(2):
        first.train_epoch()
    first.save(path)
    del first
    second = Translator()
    second.load(path)
    for _ in range(2):
        second.train_epoch()
    dist.barrier()
    if second.rank == 0:
        os.remove(path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
