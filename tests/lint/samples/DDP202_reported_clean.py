import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Report:
    def __init__(self, name):
        self.name, self.last = name, 0.0

    def each(self, rows):
        begun = time.time()
        for number, row in enumerate(rows):
            yield row
            if number % 50 == 0:
                print(self.name, number, self.last, time.time() - begun)


def learn(net, rows, optimizer):
    report = Report("learn")
    for seen, wanted in report.each(rows):
        loss = nn.functional.mse_loss(net(seen), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        report.last = loss.item()


@torch.no_grad()
def judge(net, rows):
    report, off = Report("judge"), 0.0
    for seen, wanted in report.each(rows):
        off += (net.module(seen) - wanted).abs().sum().item()
    return off


def main(training, held_out):
    dist.init_process_group("gloo")
    held = DataLoader(held_out, 8)
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Linear(4, 1))
    sampler = DistributedSampler(training)
    rows = DataLoader(training, 8, sampler=sampler)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        learn(net, rows, optimizer)
        print(judge(net, held))


main(torch.load("training.pt"), torch.load("held.pt"))
