"""Supervised contrastive pre-training for exercise clips (2-d joint tracks), torchrun --nproc_per_node 2 pose_supcon.py"""
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dnn
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


@dataclass
class Cfg:
    joints: int = 9
    frames: int = 20
    classes: int = 60
    clips: int = 320
    batch: int = 4
    epochs: int = 3
    temp: float = 0.2
    lr: float = 2e-3
    seed: int = 11


class Clips(Dataset):
    def __init__(self, cfg):
        g = torch.Generator().manual_seed(cfg.seed)
        weights = torch.linspace(3.0, 1.0, cfg.classes)
        self.y = torch.multinomial(weights, cfg.clips, replacement=True, generator=g)
        base = torch.randn(cfg.classes, cfg.joints * 2, cfg.frames, generator=g)
        self.x = base[self.y] + 0.7 * torch.randn(cfg.clips, cfg.joints * 2, cfg.frames, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Encoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(cfg.joints * 2, 32, 5), nn.GELU(), nn.Conv1d(32, 32, 5), nn.GELU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())
        self.proj = nn.Linear(32, 16)

    def forward(self, x):
        return F.normalize(self.proj(self.body(x)), dim=-1)


class SupCon(nn.Module):
    """Anchors are the local clips, positives and negatives come from everybody."""

    def __init__(self, temp):
        super().__init__()
        self.temp = temp

    def forward(self, z, y):
        rank, n = dist.get_rank(), len(y)
        z_all = torch.cat(dnn.all_gather(z))
        y_all = [torch.empty_like(y) for _ in range(dist.get_world_size())]
        dist.all_gather(y_all, y)
        y_all = torch.cat(y_all)

        own = torch.zeros(n, len(y_all), dtype=torch.bool)
        own[torch.arange(n), torch.arange(n) + rank * n] = True
        pos = (y[:, None] == y_all[None]) & ~own
        has_pos = pos.any(1)
        if not has_pos.any():
            return z.sum() * 0.0
        logits = (z @ z_all.t() / self.temp).masked_fill(own, -1e4)
        logp = logits.log_softmax(1)
        per_anchor = -(logp * pos).sum(1)[has_pos] / pos.sum(1)[has_pos]
        return per_anchor.mean()


def main(cfg=Cfg()):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(cfg.seed)
    data = Clips(cfg)
    sampler = DistributedSampler(data, seed=cfg.seed)
    loader = DataLoader(data, cfg.batch, sampler=sampler, drop_last=True)
    net = DDP(Encoder(cfg))
    crit = SupCon(cfg.temp)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr)

    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        running = torch.zeros(2)
        for x, y in loader:
            loss = crit(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(running)
        if rank == 0:
            print(f"epoch {epoch} supcon {running[0] / running[1]:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
