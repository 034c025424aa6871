import torch
from torch.nn.utils import clip_grad_norm_


def step(model, batch, optimizer, scaler):
    scaler.scale(model(batch).sum()).backward()
    clip_grad_norm_(model.parameters(), 1.0)  # <-- DDP306
    scaler.step(optimizer)
    scaler.update()


def accumulate(model, batch):
    with model.no_sync():
        model(batch).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <-- DDP306
