"""Attention MIL on histology slides with gradient accumulation.

    torchrun --nproc_per_node=2 tumor_slides.py
"""
import contextlib
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

ACCUM = 4


class Slides(Dataset):
    """A slide is a bag of patch embeddings; bags differ in size."""

    def __init__(self, n=96, dim=32):
        g = torch.Generator().manual_seed(17)
        self.bags, self.labels = [], []
        lesion = torch.randn(dim, generator=g)
        for _ in range(n):
            m = int(torch.randint(8, 40, (1,), generator=g))
            bag = torch.randn(m, dim, generator=g)
            label = float(torch.rand(1, generator=g) < 0.5)
            if label:
                bag[: m // 4] += lesion
            self.bags.append(bag)
            self.labels.append(torch.tensor([label]))

    def __len__(self):
        return len(self.bags)

    def __getitem__(self, i):
        return self.bags[i], self.labels[i]


class AttentionMIL(nn.Module):
    def __init__(self, dim=32, hidden=24):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU())
        self.attn_v = nn.Linear(hidden, hidden)
        self.attn_u = nn.Linear(hidden, hidden)
        self.attn_w = nn.Linear(hidden, 1)
        self.classify = nn.Linear(hidden, 1)

    def forward(self, bag):
        h = self.embed(bag)
        a = self.attn_w(torch.tanh(self.attn_v(h)) * torch.sigmoid(self.attn_u(h)))
        return self.classify((torch.softmax(a, 0) * h).sum(0))


class Trainer:
    def __init__(self, model, loader, sampler, lr=2e-3, accum_grad=ACCUM):
        self.model, self.loader, self.sampler = model, loader, sampler
        self.accum_grad = accum_grad
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.crit = nn.BCEWithLogitsLoss()

    def maybe_no_sync(self, batch_idx):
        if self.accum_grad > 1 and batch_idx % self.accum_grad != 0:
            return self.model.no_sync()
        return contextlib.nullcontext()

    def train_epoch(self, epoch):
        self.sampler.set_epoch(epoch)
        self.model.train()
        start, losses = time.time(), []
        for batch_idx, (bag, label) in enumerate(self.loader):
            with self.maybe_no_sync(batch_idx):
                loss = self.crit(self.model(bag), label) / self.accum_grad
                loss.backward()
            losses.append(loss.item() * self.accum_grad)
            if (batch_idx + 1) % self.accum_grad == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
                self.opt.step()
                self.opt.zero_grad()
        return sum(losses) / len(losses), time.time() - start


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(2)
    slides = Slides()
    sampler = DistributedSampler(slides, seed=4)
    loader = DataLoader(slides, batch_size=None, sampler=sampler)
    trainer = Trainer(DDP(AttentionMIL()), loader, sampler)
    for epoch in range(3):
        loss, seconds = trainer.train_epoch(epoch)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}  bce {loss:.4f}  {seconds:.1f}s")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
