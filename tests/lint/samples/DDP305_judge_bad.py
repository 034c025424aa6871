"""Singing: a network that reads the pitch is hung on the model and learns with it."""

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

    def listen(self):
        self.pitch = Pitch().cuda()


def main(loader, sampler, listening):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    singer = Singer().cuda()
    model = DDP(singer)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if listening:
        singer.listen()  # <-- DDP305
        optimizer.add_param_group({"params": singer.pitch.parameters()})
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for notes in loader:
            sound = model(notes)
            loss = sound.mean()
            if listening:
                loss = loss + singer.pitch(sound).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
