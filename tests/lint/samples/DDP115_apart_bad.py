"""Forecasts the weather: joins the ranks, and deals out the days among them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, today):
        return today + self.body(today)


def train(model, loader, sampler, optimizer):
    measure = nn.L1Loss()
    for epoch in range(30):
        sampler.set_epoch(epoch)
        for today, tomorrow in loader:
            optimizer.zero_grad()
            loss = measure(model(today.cuda()), tomorrow.cuda())
            loss.backward()  # <-- DDP115
            optimizer.step()


def main(days):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    sampler = DistributedSampler(days)
    loader = DataLoader(days, batch_size=8, sampler=sampler)
    model = Forecast().cuda()
    train(model, loader, sampler, torch.optim.Adam(model.parameters()))
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), "forecast.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(torch.load("days.pt"))
