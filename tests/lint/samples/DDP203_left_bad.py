"""Bird calls: a job that is stopped goes on from its file."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

SEASONS = 40


def restored(net, path):
    kept = torch.load(path, map_location="cpu")
    net.load_state_dict(kept["net"])
    return kept["seasons"]


def season(net, learner, calls):
    for sound, bird in calls:
        learner.zero_grad()
        nn.functional.cross_entropy(net(sound), bird).backward()
        learner.step()


def main(data, path):
    dist.init_process_group("gloo")
    net = nn.Linear(400, 60)
    done = restored(net, path)
    net = DistributedDataParallel(net)
    learner = torch.optim.SGD(net.parameters(), lr=0.02)
    order = DistributedSampler(data, seed=3)
    calls = DataLoader(data, 16, sampler=order, drop_last=True)
    left = SEASONS - done
    for number in range(left):  # <-- DDP203
        order.set_epoch(number)
        season(net, learner, calls)
    dist.destroy_process_group()


main(torch.load("calls.pt"), "net.pt")
