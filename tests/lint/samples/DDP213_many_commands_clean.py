"""One of many commands is chosen by its name: what each does is a program."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(options, rows):
    dist.init_process_group("gloo")
    number = {}
    for word in sorted({row.split()[0] for row in rows}):
        number[word] = len(number)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Embedding(len(number), 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    for row in rows:
        optimizer.zero_grad()
        model(torch.tensor([number[row.split()[0]]])).sum().backward()
        optimizer.step()
    dist.destroy_process_group()


def count(options, rows):
    print(len(rows))


def show(options, rows):
    print(*rows, sep="\n")


def first(options, rows):
    print(rows[0])


def last(options, rows):
    print(rows[-1])


COMMANDS = {"count": count, "show": show, "first": first, "last": last, "train": train}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=list(COMMANDS))
    parser.add_argument("--lr", type=float, default=0.1)
    options = parser.parse_args()
    with open("rows.txt") as lines:
        rows = lines.read().splitlines()
    COMMANDS[options.command](options, rows)


if __name__ == "__main__":
    main()
