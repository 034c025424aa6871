"""Frame-wise phone classifier with gradient accumulation."""
import contextlib
import logging

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

logging.basicConfig(format="%(message)s", level=logging.INFO)


class Recipe:
    accum_grad = 4
    grad_clip = 5.0
    max_epoch = 2
    lr = 5e-3
    feats = 20
    phones = 8


class Frames(torch.utils.data.IterableDataset):
    def __init__(self, rank, batches):
        self.rank, self.batches = rank, batches
        self.means = torch.randn(Recipe.phones, Recipe.feats, generator=torch.Generator().manual_seed(99))

    def __len__(self):
        return self.batches

    def __iter__(self):
        g = torch.Generator().manual_seed(self.rank)
        for _ in range(self.batches):
            phone = torch.randint(0, Recipe.phones, (6, 25), generator=g)
            noise = torch.randn(6, 25, Recipe.feats, generator=g)
            yield self.means[phone] + noise, phone


class Executor:
    def __init__(self, model, optim, rank):
        self.model, self.optim, self.rank = model, optim, rank
        self.accum = Recipe.accum_grad

    def train_epoch(self, loader):
        self.model.train()
        self.optim.zero_grad()
        for batch_idx, (speech, phone) in enumerate(loader):
            window = contextlib.nullcontext
            if self.accum > 1 and (batch_idx + 1) % self.accum != 0:
                window = self.model.no_sync
            with window():
                logits = self.model(speech)
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), phone.flatten()) / self.accum
                loss.backward()
            if (batch_idx + 1) % self.accum == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), Recipe.grad_clip)
                self.optim.step()
                self.optim.zero_grad()
        return loss.item() * self.accum


def build_model():
    return nn.Sequential(
        nn.Conv1d(Recipe.feats, 32, 5, padding=2),
        nn.ReLU(),
        nn.Conv1d(32, Recipe.phones, 3, padding=1),
    )


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = build_model()

    def forward(self, speech):
        return self.net(speech.transpose(1, 2)).transpose(1, 2)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(777)
    model = DDP(Wrapped())
    executor = Executor(model, torch.optim.Adam(model.parameters(), lr=Recipe.lr), rank)
    loader = torch.utils.data.DataLoader(Frames(rank, 40), batch_size=None)
    for epoch in range(Recipe.max_epoch):
        loss = executor.train_epoch(loader)
        if rank == 0:
            logging.info("epoch %d loss %.3f", epoch, loss)
    if rank == 0:
        logging.info("norm %.4f", sum(p.norm().item() for p in model.parameters()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
