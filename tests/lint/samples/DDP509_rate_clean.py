import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import LambdaLR, StepLR


@dataclass
class State:
    net: torch.nn.Module
    opt: torch.optim.Optimizer
    rate: LambdaLR
    at: int = 0

    def restore(self, place):
        kept = torch.load(place, map_location="cpu")
        self.net.module.load_state_dict(kept["net"])
        self.opt.load_state_dict(kept["opt"])
        self.rate.load_state_dict(kept["rate"])
        self.at = kept["at"]

    def keep(self, place):
        if dist.get_rank() == 0:
            torch.save(
                {
                    "net": self.net.module.state_dict(),
                    "opt": self.opt.state_dict(),
                    "rate": self.rate.state_dict(),
                    "at": self.at,
                },
                place + ".new",
            )
            os.replace(place + ".new", place)
        dist.barrier()


def train(place):
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    state = State(net, opt, LambdaLR(opt, lambda step: min(1.0, step / 100)))
    state.restore(place)
    while state.at < 10:
        net(torch.randn(2, 4)).sum().backward()
        opt.step()
        opt.zero_grad()
        state.rate.step()
        state.at += 1
        state.keep(place)


def counted_up(place):
    """The rate is brought to where it was by as many steps as were made."""
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    kept = torch.load(place, map_location="cpu")
    net.module.load_state_dict(kept["net"])
    opt.load_state_dict(kept["opt"])
    rate = StepLR(opt, 30)
    for _ in range(kept["at"]):
        rate.step()
    for _ in range(kept["at"], 10):
        net(torch.randn(2, 4)).sum().backward()
        opt.step()
        opt.zero_grad()
        rate.step()


def begun_later(place):
    """The rate is told where it begins."""
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    kept = torch.load(place, map_location="cpu")
    net.module.load_state_dict(kept["net"])
    opt.load_state_dict(kept["opt"])
    rate = StepLR(opt, 30, last_epoch=kept["at"])
    for _ in range(kept["at"], 10):
        net(torch.randn(2, 4)).sum().backward()
        opt.step()
        opt.zero_grad()
        rate.step()


dist.init_process_group("gloo")
train("last.pt")
counted_up("last.pt")
begun_later("last.pt")
dist.destroy_process_group()
