import argparse
import contextlib
import logging
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset, DistributedSampler


class FrameModel(nn.Module):
    """GRU over log-mel frames, one phone label per utterance."""

    def __init__(self, n_mel=12, hidden=32, n_phone=10):
        super().__init__()
        self.rnn = nn.GRU(n_mel, hidden, batch_first=True)
        self.proj = nn.Linear(hidden, n_phone)

    def forward(self, feats):
        out, _ = self.rnn(feats)
        return self.proj(out.mean(1))


def synth(n=384):
    g = torch.Generator().manual_seed(1)
    y = torch.randint(0, 10, (n,), generator=g)
    base = torch.randn(10, 1, 12, generator=g)
    return TensorDataset(base[y] + 0.9 * torch.randn(n, 15, 12, generator=g), y)


class Trainer:
    def __init__(self, model, optim, accum_grad, rank):
        self.model, self.optim = model, optim
        self.accum_grad, self.rank = accum_grad, rank
        self.loss_fn = nn.CrossEntropyLoss()

    def train_epoch(self, epoch, loader):
        self.model.train()
        self.optim.zero_grad()
        for batch_idx, (feats, labels) in enumerate(loader):
            my_context = contextlib.nullcontext
            if self.accum_grad > 1:
                my_context = self.model.no_sync if batch_idx % self.accum_grad != 0 else my_context
            with my_context():
                loss = self.loss_fn(self.model(feats), labels)
                (loss / self.accum_grad).backward()
            if (batch_idx + 1) % self.accum_grad == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
                self.optim.step()
                self.optim.zero_grad()
            if batch_idx % 8 == 0 and self.rank == 0:
                logging.info("epoch %d batch %d loss %.4f", epoch, batch_idx, loss.item())


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser()
    parser.add_argument("--accum_grad", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--max_epoch", type=int, default=3)
    parser.add_argument("--lr", type=float, default=5e-3)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    ds = synth()
    sampler = DistributedSampler(ds, shuffle=True)
    loader = DataLoader(ds, batch_size=args.batch_size, sampler=sampler)
    model = DDP(FrameModel())
    trainer = Trainer(model, torch.optim.Adam(model.parameters(), lr=args.lr), args.accum_grad, rank)
    for epoch in range(args.max_epoch):
        sampler.set_epoch(epoch)
        trainer.train_epoch(epoch, loader)
    if rank == 0:
        torch.save(model.module.state_dict(), "asr_last.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
