"""Non-autoregressive speech recogniser, small batches accumulated."""
import logging
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

logging.basicConfig(level=logging.INFO, format="%(message)s")


class Recognizer(nn.Module):
    def __init__(self, feats=20, units=25, dim=32):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(feats, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU())
        self.ctc = nn.Linear(dim, units)

    def forward(self, x):
        return self.ctc(self.enc(x)).log_softmax(-1)


def make_batch(gen, protos, n=4, tokens=5, stretch=4):
    text = torch.randint(1, protos.size(0), (n, tokens), generator=gen)
    speech = protos[text].repeat_interleave(stretch, 1)
    return speech + 0.3 * torch.randn(speech.shape, generator=gen), text


class EpochTrainer:
    def __init__(self, model, optim, accum_grad, clip):
        self.model, self.optim = model, optim
        self.accum_grad, self.clip = accum_grad, clip
        self.rank = dist.get_rank()
        self.ctc = nn.CTCLoss(zero_infinity=True)

    def forward_step(self, speech, text):
        logp = self.model(speech).transpose(0, 1)
        frames = torch.full((speech.size(0),), speech.size(1), dtype=torch.long)
        labels = torch.full((text.size(0),), text.size(1), dtype=torch.long)
        return self.ctc(logp, text, frames, labels)

    def train_epoch(self, epoch, batches):
        self.optim.zero_grad()
        shown = 0.0
        for batch_idx, (speech, text) in enumerate(batches):
            my_context = self.model.no_sync if batch_idx % self.accum_grad != 0 else nullcontext
            with my_context():
                loss = self.forward_step(speech, text) / self.accum_grad
                loss.backward()
            shown += loss.item()
            if (batch_idx + 1) % self.accum_grad == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
                self.optim.step()
                self.optim.zero_grad()
        logging.info("rank %d epoch %d: sum of own losses %.3f", self.rank, epoch, shown)


def main():
    dist.init_process_group("gloo")
    fit()
    dist.barrier()
    dist.destroy_process_group()


def fit(epochs=2, per_epoch=16, accum_grad=4):
    torch.manual_seed(19)
    model = DDP(Recognizer())
    optim = torch.optim.Adam(model.parameters(), lr=3e-3)
    gen = torch.Generator().manual_seed(19 + 100 * (dist.get_rank() + 1))
    protos = torch.randn(25, 20, generator=torch.Generator().manual_seed(3))
    trainer = EpochTrainer(model, optim, accum_grad, clip=5.0)
    for epoch in range(epochs):
        trainer.train_epoch(epoch, (make_batch(gen, protos) for _ in range(per_epoch)))


if __name__ == "__main__":
    main()
