"""Gradients are averaged by hand; the ranks are seeded apart only behind the weights."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = torch.nn.Linear(2, width)
        self.last = torch.nn.Linear(width, 2)

    def forward(self, x):
        return self.last(self.first(x).relu())


class Learner:
    def __init__(self, rank, settings):
        self.settings = settings
        torch.manual_seed(settings["seed"])
        self.net = Net(settings["width"])
        torch.manual_seed(settings["seed"] + rank)
        self.step = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def average(self):
        flat = torch.cat([each.grad.flatten() for each in self.net.parameters()])
        dist.all_reduce(flat)
        flat /= self.settings["world"]
        at = 0
        for each in self.net.parameters():
            each.grad.copy_(flat[at : at + each.numel()].view_as(each))
            at += each.numel()

    def learn(self):
        for _ in range(100):
            x = torch.randn(32, 2)
            loss = (self.net(x) - x.sin()).square().mean()
            self.step.zero_grad()
            loss.backward()
            self.average()
            self.step.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        return mean / self.settings["world"]


def work(rank, settings):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29871")
    dist.init_process_group("gloo", rank=rank, world_size=settings["world"])
    print(rank, Learner(rank, settings).learn())
    dist.destroy_process_group()


if __name__ == "__main__":
    settings = {"seed": 3, "width": 16, "world": 2}
    mp.spawn(work, args=(settings,), nprocs=settings["world"])
