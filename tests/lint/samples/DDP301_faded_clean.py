import argparse

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
    if share > 0:
        loss = loss + share * nn.functional.mse_loss(flow, current)
    else:
        loss = loss + 0 * flow.sum()
    pen.zero_grad()
    loss.backward()
    pen.step()


def other_lesson(judge, pen, batch, number):
    gauges, height, current = batch
    if number % 4 == 0:
        high, flow = judge(gauges)
        loss = nn.functional.mse_loss(high, height) + flow.mean()
        pen.zero_grad()
        loss.backward()
        pen.step()


def third_lesson(reader, pen, batch, both):
    gauges, height, current = batch
    high, flow = reader(gauges)
    loss = nn.functional.mse_loss(high, height)
    if both:
        loss = loss + nn.functional.mse_loss(flow, current)
    pen.zero_grad()
    loss.backward()
    pen.step()


def fourth_lesson(watcher, pen, batch, day):
    gauges, height, current = batch
    high, flow = watcher(gauges)
    loss = nn.functional.mse_loss(high, height)
    if day < 3:
        loss = loss + nn.functional.mse_loss(flow, current)
    pen.zero_grad()
    loss.backward()
    pen.step()


def main(days=9):
    parser = argparse.ArgumentParser()
    parser.add_argument("--both", type=int, default=1)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    tides = TensorDataset(torch.rand(96, 12), torch.rand(96, 1), torch.rand(96, 2))
    deal = DistributedSampler(tides)
    harbour = DistributedDataParallel(Harbour())
    judge = DistributedDataParallel(Harbour())
    reader = DistributedDataParallel(Harbour())
    watcher = DistributedDataParallel(Harbour(), find_unused_parameters=True)
    pen = torch.optim.SGD(harbour.parameters(), lr=0.1)
    nib = torch.optim.SGD(judge.parameters(), lr=0.1)
    quill = torch.optim.SGD(reader.parameters(), lr=0.1)
    chalk = torch.optim.SGD(watcher.parameters(), lr=0.1)
    course = Course(3)
    for day in range(days):
        deal.set_epoch(day)
        for number, batch in enumerate(DataLoader(tides, 8, sampler=deal)):
            lesson(harbour, pen, batch, course.share(day))
            other_lesson(judge, nib, batch, number)
            third_lesson(reader, quill, batch, options.both > 0)
            fourth_lesson(watcher, chalk, batch, day)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
