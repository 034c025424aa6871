"""Losses that are kept for a look at them later, some by their number and some in a book."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Book:
    def __init__(self):
        self.lines, self.written = [], 0

    def write(self, line):
        if self.written % 2 == 0:
            self.lines.append(line)  # <-- DDP601
        self.written += 1


class Queue:
    """Another thing with lines, from which one is taken."""

    def __init__(self):
        self.lines = ["begin", "end"]

    def next(self):
        return self.lines.pop()


def train(model, optimizer, series):
    book, queue = Book(), Queue()
    late, marked, seen = [], [], 0
    for number in range(400):
        error = model(series[number % 7]).abs().mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        book.write(error)
        if number + 1 > 20:
            late.append(error)  # <-- DDP601
        if not (number % 50 != 0 and seen < 9):
            marked.append(error)  # <-- DDP601
        seen += 1
    return queue.next(), late, marked


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(6, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    train(model, optimizer, torch.randn(7, 3, 6))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
