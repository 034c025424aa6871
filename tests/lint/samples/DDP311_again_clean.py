"""Graphs that are kept, and gone through once by each backward of the wrapper."""

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


class ActorCritic(nn.Module):
    """Two networks that share nothing."""

    def __init__(self):
        super().__init__()
        self.actor = nn.Linear(8, 20)
        self.critic = nn.Linear(8, 2)

    def forward(self, x):
        return self.actor(x), self.critic(x)


def added_up(net, optimizer, batches):
    for x, word, tone in batches:
        words, tones = net(x)
        optimizer.zero_grad()
        (F.cross_entropy(words, word) + F.cross_entropy(tones, tone)).backward(retain_graph=True)
        optimizer.step()


def in_turn(net, optimizer, batches):
    """Each has a forward of its own."""
    for x, word, tone in batches:
        optimizer.zero_grad()
        F.cross_entropy(net(x)[0], word).backward(retain_graph=True)
        F.cross_entropy(net(x)[1], tone).backward()
        optimizer.step()


def either(net, optimizer, batches, scaler):
    for x, word, _ in batches:
        words, tones = net(x)
        loss = F.cross_entropy(words, word) + tones.sum()
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward(retain_graph=True)
        else:
            loss.backward(retain_graph=True)
        optimizer.step()


def apart(net, optimizer, batches):
    for x, word, tone in batches:
        words, tones = net(x)
        optimizer.zero_grad()
        F.cross_entropy(words, word).backward(retain_graph=True)
        F.cross_entropy(tones, tone).backward()
        optimizer.step()


def probed(net, probe, optimizer, batches):
    """The probe learns of what the model gives, and the model nothing of the probe."""
    for x, word, tone in batches:
        words, tones = net(x)
        optimizer.zero_grad()
        (F.cross_entropy(words, word) + tones.mean()).backward(retain_graph=True)
        F.cross_entropy(probe(words.detach()), tone).backward()
        optimizer.step()


def adversarial(maker, judge, of_maker, of_judge, batches):
    for real, noise, _ in batches:
        fake = maker(noise)[0]
        of_judge.zero_grad()
        (judge(fake.detach())[1].mean() - judge(real)[1].mean()).backward(retain_graph=True)
        of_judge.step()
        of_maker.zero_grad()
        (-judge(fake)[1].mean()).backward()
        of_maker.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    model, pair = DDP(Reader()), DDP(ActorCritic())
    probe = nn.Linear(20, 2)
    weights = [*model.parameters(), *pair.parameters(), *probe.parameters()]
    sgd = torch.optim.SGD(weights, lr=0.1)
    data = torch.load("batches.pt")
    added_up(model, sgd, data)
    in_turn(model, sgd, data)
    either(model, sgd, data, torch.amp.GradScaler("cuda"))
    apart(pair, sgd, data)
    probed(model, probe, sgd, data)
