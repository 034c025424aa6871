"""Caption model trained with Accelerate: linear warm-up, then cosine decay.

    torchrun --nproc_per_node=2 caption_warmup.py
"""
import math
from types import SimpleNamespace

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

cfg = SimpleNamespace(
    seed=5, epochs=4, batch_size=8, lr=3e-3, warmup_fraction=0.1, min_factor=0.02,
    vocab=40, length=8, image_dim=20,
)


def make_captions(n=256):
    g = torch.Generator().manual_seed(cfg.seed)
    image = torch.randn(n, cfg.image_dim, generator=g)
    first = image[:, :10].argmax(1)
    step = 1 + image[:, 10:].argmax(1)
    words = (first[:, None] + step[:, None] * torch.arange(cfg.length)) % (cfg.vocab - 1) + 1
    return TensorDataset(image, words)


class Captioner(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.start = nn.Linear(cfg.image_dim, dim)
        self.emb = nn.Embedding(cfg.vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, cfg.vocab)

    def forward(self, image, words):
        shifted = torch.cat([torch.zeros_like(words[:, :1]), words[:, :-1]], dim=1)
        h, _ = self.rnn(self.emb(shifted), torch.tanh(self.start(image)).unsqueeze(0))
        return self.out(h)


def warmup_cosine(total):
    warm = max(1, int(cfg.warmup_fraction * total))

    def factor(step):
        if step < warm:
            return (step + 1) / warm
        done = min(1.0, (step - warm) / max(1, total - warm))
        return cfg.min_factor + (1 - cfg.min_factor) * 0.5 * (1 + math.cos(math.pi * done))

    return factor


def main():
    accelerator = Accelerator(cpu=True)
    set_seed(cfg.seed)
    model = Captioner()
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    loader = DataLoader(make_captions(), batch_size=cfg.batch_size, shuffle=True)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    total_steps = cfg.epochs * len(loader) * accelerator.num_processes
    schedule = torch.optim.lr_scheduler.LambdaLR(opt.optimizer, warmup_cosine(total_steps))
    schedule = accelerator.prepare(schedule)
    for epoch in range(cfg.epochs):
        total = torch.zeros(1)
        for image, words in loader:
            loss = nn.functional.cross_entropy(model(image, words).flatten(0, 1), words.flatten())
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            schedule.step()
            opt.zero_grad()
            total += loss.detach()
        mean = accelerator.reduce(total / len(loader), reduction="mean").item()
        accelerator.print(f"epoch {epoch} loss {mean:.3f} lr {schedule.get_last_lr()[0]:.2e}", flush=True)
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
