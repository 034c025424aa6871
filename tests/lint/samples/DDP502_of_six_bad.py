import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Course:
    def __init__(self, net, folder):
        self.net = net
        self.folder = folder

    def loss(self, x):
        raise NotImplementedError

    def fit(self, batches):
        rate = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for x in batches:
            rate.zero_grad()
            self.loss(x).backward()
            rate.step()
        self.keep()

    def keep(self):
        torch.save(self.net.module.state_dict(), os.path.join(self.folder, "last.pt"))  # <-- DDP502


class Plain(Course):
    def loss(self, x):
        return (self.net(x).abs() ** 1).mean()


class Squared(Course):
    def loss(self, x):
        return (self.net(x).abs() ** 2).mean()


class Smooth(Course):
    def loss(self, x):
        return (self.net(x).abs() ** 3).mean()


class Cubed(Course):
    def loss(self, x):
        return (self.net(x).abs() ** 4).mean()


class Sharp(Course):
    def loss(self, x):
        return (self.net(x).abs() ** 5).mean()


class Flat(Course):
    def loss(self, x):
        return (self.net(x).abs() ** 6).mean()


COURSES = {
    "plain": (Plain, "words"),
    "squared": (Squared, "words"),
    "smooth": (Smooth, "words"),
    "cubed": (Cubed, "words"),
    "sharp": (Sharp, "words"),
    "flat": (Flat, "words"),
}


def main(args, batches):
    dist.init_process_group("nccl")
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    net = DistributedDataParallel(torch.nn.Linear(8, 8).cuda(), device_ids=[device])
    kind, _ = COURSES[args.course]
    course = kind(net, args.folder)
    course.fit(batches)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--course")
    options.add_argument("--folder", default="runs")
    main(options.parse_args(), torch.randn(100, 4, 8))
