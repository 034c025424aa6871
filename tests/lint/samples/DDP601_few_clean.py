"""Losses that are kept for a look at them later, no more than a few of them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Book:
    def __init__(self):
        self.lines, self.written = [], 0

    def write(self, line):
        if self.written < 16:
            self.lines.append(line)
        else:
            self.lines[self.written % 16] = line
        self.written += 1


class Queue:
    """Another thing with lines, from which one is taken."""

    def __init__(self):
        self.lines = ["begin", "end"]

    def next(self):
        return self.lines.pop()


def train(model, optimizer, series):
    book, queue = Book(), Queue()
    late, marked, first, seen = [], [], [], 0
    for number in range(400):
        error = model(series[number % 7]).abs().mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        book.write(error)
        if not number + 1 > 20:
            late.append(error)
        if number % 50 == 0 and seen < 9:
            marked.append(error)
            seen += 1
        if number >= 3:
            continue
        first.append(error)
    return queue.next(), late, marked, first


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(6, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    train(model, optimizer, torch.randn(7, 3, 6))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
