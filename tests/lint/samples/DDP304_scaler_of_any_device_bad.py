import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Trainer:
    def __init__(self, net, data, every, device):
        self.model = DistributedDataParallel(net.to(device), device_ids=[device])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.loader = DataLoader(data, 8, sampler=DistributedSampler(data))
        self.every, self.device = every, device
        self.step = self.number = 0

    def learn(self, rows):
        scaler = torch.GradScaler(device="cuda")
        with torch.autocast("cuda"):
            loss = self.model(rows.to(self.device)).square().mean()
        scaler.scale(loss / self.every).backward()  # <-- DDP304
        if (self.number + 1) % self.every == 0:
            scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            scaler.step(self.optimizer)
            scaler.update()
            self.optimizer.zero_grad(set_to_none=True)

    def run(self, steps):
        epoch = 0
        while True:
            self.loader.sampler.set_epoch(epoch)
            epoch += 1
            for rows in self.loader:
                self.learn(rows)
                self.number += 1
                if self.number % self.every == 0:
                    self.step += 1
                if self.step >= steps:
                    break
            if self.step >= steps:
                break


def main(net, data, every=4):
    dist.init_process_group("nccl")
    device = dist.get_rank() % torch.cuda.device_count()
    torch.cuda.set_device(device)
    Trainer(net, data, every, device).run(100)
    dist.destroy_process_group()
