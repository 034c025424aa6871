import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Harbour(nn.Module):
    """The tide of the next hour, and as long as it helps, the current beside it."""

    def __init__(self):
        super().__init__()
        self.gauges = nn.Linear(12, 32)
        self.height = nn.Linear(32, 1)
        self.current = nn.Linear(32, 2)

    def forward(self, gauges):
        seen = self.gauges(gauges).tanh()
        return self.height(seen), self.current(seen)


class Course:
    def __init__(self, days):
        self.days = days

    def share(self, day):
        return max(0.0, 1.0 - day / self.days)


def lesson(harbour, pen, batch, share):
    gauges, height, current = batch
    high, flow = harbour(gauges)
    loss = nn.functional.mse_loss(high, height)
    if share > 0:  # <-- DDP301
        loss = loss + share * nn.functional.mse_loss(flow, current)
    pen.zero_grad()
    loss.backward()
    pen.step()


def main(days=9):
    dist.init_process_group("gloo")
    tides = TensorDataset(torch.rand(96, 12), torch.rand(96, 1), torch.rand(96, 2))
    deal = DistributedSampler(tides)
    harbour = DistributedDataParallel(Harbour())
    pen = torch.optim.SGD(harbour.parameters(), lr=0.1)
    course = Course(3)
    for day in range(days):
        deal.set_epoch(day)
        for batch in DataLoader(tides, 8, sampler=deal):
            lesson(harbour, pen, batch, course.share(day))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
