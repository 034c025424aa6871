"""Several losses of one forward, of which each goes backward by itself."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.words = nn.Linear(8, 20)
        self.tone = nn.Linear(8, 2)

    def forward(self, x):
        hidden = self.trunk(x)
        return self.words(hidden), self.tone(hidden)


def in_turn(net, optimizer, batches):
    for x, word, tone in batches:
        words, tones = net(x)
        optimizer.zero_grad()
        F.cross_entropy(words, word).backward(retain_graph=True)
        F.cross_entropy(tones, tone).backward()  # <-- DDP311
        optimizer.step()


def one_by_one(net, optimizer, batches):
    for x, word, tone in batches:
        outputs = net(x)
        losses = [F.cross_entropy(one, other) for one, other in zip(outputs, (word, tone))]
        optimizer.zero_grad()
        for loss in losses:
            loss.backward(retain_graph=True)  # <-- DDP311
        optimizer.step()


def in_half(net, optimizer, batches, scaler):
    for x, word, tone in batches:
        words, tones = net(x)
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(words, word)).backward(retain_graph=True)
        scaler.scale(F.cross_entropy(tones, tone)).backward()  # <-- DDP311
        scaler.step(optimizer)
        scaler.update()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    model = DDP(Reader())
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    in_turn(model, sgd, torch.load("batches.pt"))
    one_by_one(model, sgd, torch.load("batches.pt"))
    in_half(model, sgd, torch.load("batches.pt"), torch.amp.GradScaler("cuda"))
