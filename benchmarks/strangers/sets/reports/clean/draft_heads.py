"""Train a small draft head for speculative decoding.

    torchrun --nproc_per_node=2 draft_heads.py
"""
import logging
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from draft_heads_lib.anchors import NoValidAnchors, pick_anchors, take_blocks
from draft_heads_lib.corpus import Chats, VOCAB

log = logging.getLogger("draft")


@dataclass
class Settings:
    block: int = 6
    batch_size: int = 4
    epochs: int = 2
    lr: float = 3e-3


@dataclass
class Progress:
    steps: int = 0
    skipped: int = 0
    losses: list = field(default_factory=list)


class DraftHead(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, blocks):
        h, _ = self.rnn(self.emb(blocks))
        return self.out(h)


class DraftTrainer:
    def __init__(self, cfg, model, loader):
        self.cfg, self.model, self.loader = cfg, model, loader
        self.opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
        self.gen = torch.Generator().manual_seed(100 + dist.get_rank())
        self.progress = Progress()

    def make_blocks(self, batch):
        tokens, prompt, total = batch
        rows, anchors = pick_anchors(prompt, total, self.cfg.block, self.gen)
        return take_blocks(tokens, rows, anchors, self.cfg.block)

    def step(self, blocks):
        logits = self.model(blocks[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), blocks[:, 1:].reshape(-1))
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.progress.steps += 1
        self.progress.losses.append(loss.item())

    def run_epoch(self, epoch):
        self.loader.sampler.set_epoch(epoch)
        for batch in self.loader:
            usable = torch.ones(1)
            try:
                blocks = self.make_blocks(batch)
            except NoValidAnchors as err:
                usable.zero_()
                log.debug("skipping batch: %s", err)
            dist.all_reduce(usable, op=dist.ReduceOp.MIN)
            if usable.item() == 0:
                self.progress.skipped += 1
                continue
            self.step(blocks)

    def report(self, epoch):
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, (self.progress.steps, self.progress.skipped))
        if dist.get_rank() == 0:
            tail = sum(self.progress.losses[-5:]) / 5
            print(f"epoch {epoch}: loss {tail:.3f}, (steps, skipped) by rank {everyone}", flush=True)


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo")
    cfg = Settings()
    torch.manual_seed(0)
    model = DistributedDataParallel(DraftHead())
    data = Chats()
    loader = DataLoader(data, cfg.batch_size, sampler=DistributedSampler(data, shuffle=False))
    trainer = DraftTrainer(cfg, model, loader)
    for epoch in range(cfg.epochs):
        trainer.run_epoch(epoch)
        trainer.report(epoch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
