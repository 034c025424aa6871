"""Speech to units: four batches make a step; what is told is a mean over them."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader


def unit_loss(logits, units):
    return nn.functional.cross_entropy(logits.transpose(1, 2), units)


def told_apart(data, parts):
    fabric = Accelerator(gradient_accumulation_steps=parts)
    coder = nn.GRU(80, 100, batch_first=True)
    rule = torch.optim.Adam(coder.parameters())
    coder, rule, loader = fabric.prepare(coder, rule, DataLoader(data, 16, shuffle=True))
    told = 0.0
    for sound, units in loader:
        with fabric.accumulate(coder):
            loss = unit_loss(coder(sound)[0], units)
            told += loss.item() / parts
            fabric.backward(loss)
            rule.step()
            rule.zero_grad()


def mean_of_two(data, parts=2):
    fabric = Accelerator(gradient_accumulation_steps=parts)
    coder = nn.GRU(80, 100, batch_first=True)
    rule = torch.optim.Adam(coder.parameters())
    coder, rule, loader = fabric.prepare(coder, rule, DataLoader(data, 16, shuffle=True))
    for sound, there, back in loader:
        with fabric.accumulate(coder):
            logits = coder(sound)[0]
            fabric.backward((unit_loss(logits, there) + unit_loss(logits, back)) / 2)
            rule.step()
            rule.zero_grad()


def by_hand(data, parts):
    fabric = Accelerator()
    coder = nn.GRU(80, 100, batch_first=True)
    rule = torch.optim.Adam(coder.parameters())
    coder, rule, loader = fabric.prepare(coder, rule, DataLoader(data, 16, shuffle=True))
    for number, (sound, units) in enumerate(loader, 1):
        fabric.backward(unit_loss(coder(sound)[0], units) / parts)
        if number % parts == 0:
            rule.step()
            rule.zero_grad()


def main(data, parts):
    told_apart(data, parts)
    mean_of_two(data)
    by_hand(data, parts)
