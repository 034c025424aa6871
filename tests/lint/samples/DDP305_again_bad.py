import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def switch(net, on):
    for weight in net.parameters():
        weight.requires_grad = on  # <-- DDP305


def play(batches):
    painter = DistributedDataParallel(nn.Linear(4, 4))
    critic = nn.Linear(4, 1)
    switch(critic, False)
    judge = DistributedDataParallel(critic)  # <-- DDP301
    first = torch.optim.SGD(painter.parameters(), lr=0.1)
    second = torch.optim.SGD(judge.parameters(), lr=0.1)
    for batch in batches:
        second.zero_grad()
        judge(painter(batch).detach()).mean().backward()
        second.step()
        switch(judge.module, False)
        first.zero_grad()
        judge.module(painter(batch)).mean().neg().backward()
        first.step()
        switch(judge.module, True)
