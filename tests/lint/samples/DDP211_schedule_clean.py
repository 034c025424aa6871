import torch
from accelerate import Accelerator
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader
from transformers import get_polynomial_decay_schedule_with_warmup


def warm(net, data, epochs):
    acc = Accelerator()
    optimizer = torch.optim.AdamW(net.parameters())
    net, optimizer, loader = acc.prepare(net, optimizer, DataLoader(data, 4, shuffle=True))
    total = len(loader) * epochs * acc.num_processes
    rate = acc.prepare(OneCycleLR(optimizer, 0.1, total_steps=total))
    for _ in range(epochs):
        for batch in loader:
            acc.backward(net(batch).mean())
            optimizer.step()
            rate.step()
            optimizer.zero_grad()


def until(net, data, most):
    acc = Accelerator()
    optimizer = torch.optim.AdamW(net.parameters())
    most_of_all = most * acc.num_processes
    rate = get_polynomial_decay_schedule_with_warmup(optimizer, 100, most_of_all)
    net, optimizer = acc.prepare(net, optimizer)
    loader, rate = acc.prepare(DataLoader(data, 4), rate)
    done = 0
    for batch in loader:
        acc.backward(net(batch).mean())
        optimizer.step()
        rate.step()
        optimizer.zero_grad()
        done += 1
        if done >= most:
            break
