"""Singing: a network that reads the pitch is hung on the model for a test, and asked alone."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Pitch(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.Linear(80, 1)

    def forward(self, sound):
        return self.read(sound)


class Singer(nn.Module):
    def __init__(self):
        super().__init__()
        self.sing = nn.Linear(16, 80)

    def forward(self, notes):
        return self.sing(notes)

    def begin_test(self):
        self.pitch = Pitch().cuda()
        self.pitch.load_state_dict(torch.load("pitch.pt", map_location="cpu"))
        self.pitch.eval()

    def test_step(self, notes):
        return self.pitch(self(notes)).mean().item()


def evaluate(model, singer, loader, test):
    model.eval()
    torch.set_grad_enabled(False)
    if test:
        singer.begin_test()
    total = 0.0
    for notes in loader:
        total += singer.test_step(notes) if test else model(notes).mean().item()
    torch.set_grad_enabled(True)
    return total


def main(loader, sampler, test):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    singer = Singer().cuda()
    model = DDP(singer)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if test:
        print(evaluate(model, singer, loader, True))
        return
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for notes in loader:
            model(notes).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        print(evaluate(model, singer, loader, False))
