"""Speech to units: four batches make a step."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader


def unit_loss(logits, units):
    return nn.functional.cross_entropy(logits.transpose(1, 2), units)


def by_number(data, parts=4):
    fabric = Accelerator(gradient_accumulation_steps=parts)
    coder = nn.GRU(80, 100, batch_first=True)
    rule = torch.optim.Adam(coder.parameters())
    coder, rule, loader = fabric.prepare(coder, rule, DataLoader(data, 16, shuffle=True))
    for sound, units in loader:
        with fabric.accumulate(coder):
            loss = unit_loss(coder(sound)[0], units)
            fabric.backward(loss / parts)  # <-- DDP211
            rule.step()
            rule.zero_grad()


def by_attribute(data, parts):
    fabric = Accelerator(gradient_accumulation_steps=parts)
    coder = nn.GRU(80, 100, batch_first=True)
    rule = torch.optim.Adam(coder.parameters())
    coder, rule, loader = fabric.prepare(coder, rule, DataLoader(data, 16, shuffle=True))
    for sound, units in loader:
        with fabric.accumulate(coder):
            loss = unit_loss(coder(sound)[0], units)
            loss = loss.div(fabric.gradient_accumulation_steps)  # <-- DDP211
            fabric.backward(loss)
            rule.step()
            rule.zero_grad()


def main(data, parts):
    by_number(data)
    by_attribute(data, parts)
