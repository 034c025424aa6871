import logging
import math
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("pretrain")


@dataclass
class Config:
    epochs: int = 2
    batch_size: int = 8
    num_clips: int = 160
    frames: int = 20
    dim: int = 12
    lr: float = 5e-3


class ClipDataset(Dataset):
    """Short feature clips; a few come from silent recordings."""

    def __init__(self, cfg):
        g = torch.Generator().manual_seed(0)
        self.clips = torch.randn(cfg.num_clips, cfg.frames, cfg.dim, generator=g)
        self.clips[37] = 0.0

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, idx):
        clip = self.clips[idx]
        return (clip - clip.mean()) / clip.std()


class MaskedPredictor(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mask_emb = nn.Parameter(torch.zeros(dim))
        self.rnn = nn.GRU(dim, 24, batch_first=True)
        self.out = nn.Linear(24, dim)

    def forward(self, clips, mask):
        x = torch.where(mask.unsqueeze(-1), self.mask_emb.expand_as(clips), clips)
        hidden, _ = self.rnn(x)
        return self.out(hidden)


class Pretrainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rank = dist.get_rank()
        data = ClipDataset(cfg)
        self.sampler = DistributedSampler(data, shuffle=True, drop_last=True)
        self.loader = DataLoader(data, batch_size=cfg.batch_size, sampler=self.sampler)
        self.model = DDP(MaskedPredictor(cfg.dim))
        self.optim = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)
        self.skipped = 0

    def compute_loss(self, clips):
        mask = torch.rand(clips.shape[:2]) < 0.3
        pred = self.model(clips, mask)
        return nn.functional.mse_loss(pred, clips)

    def training_step(self, clips):
        loss = self.compute_loss(clips)
        if not math.isfinite(loss.item()):
            self.skipped += 1
            log.warning("rank %d: invalid loss, batch skipped", self.rank)
            return None
        self.optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optim.step()
        return loss.item()

    def run(self):
        for epoch in range(self.cfg.epochs):
            self.sampler.set_epoch(epoch)
            losses = [self.training_step(clips) for clips in self.loader]
            losses = [v for v in losses if v is not None]
            dist.barrier()
            if self.rank == 0:
                log.info("epoch %d loss %.4f", epoch, sum(losses) / len(losses))


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(100 + dist.get_rank())
    Pretrainer(Config()).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
