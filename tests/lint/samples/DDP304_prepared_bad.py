"""What others import: accelerate wraps the model, and each part of a step reduces."""

import torch
from accelerate import Accelerator
from torch import nn

PARTS = 4
accelerator = Accelerator(mixed_precision="fp16")
net = nn.Linear(8, 8)
denoiser, learner = accelerator.prepare(net, torch.optim.AdamW(net.parameters()))


def fit(batches, steps):
    for _ in range(steps):
        for _ in range(PARTS):
            noisy = next(batches).to(accelerator.device)
            loss = denoiser(noisy).square().mean() / PARTS
            accelerator.backward(loss)  # <-- DDP304
        accelerator.clip_grad_norm_(denoiser.parameters(), 1.0)
        learner.step()
        learner.zero_grad()
