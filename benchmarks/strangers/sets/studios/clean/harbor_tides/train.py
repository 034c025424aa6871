"""Water level forecast for one harbour.  torchrun --nproc-per-node 2 train.py"""
import os
import shutil
import tempfile
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from data import make_series, split_for, windows
from net import TideNet
from sync import MeetingPoint


@dataclass
class Settings:
    length: int = 24
    horizon: int = 4
    epochs: int = 4
    batch: int = 40
    lr: float = 2e-3


def share_folder():
    box = [tempfile.mkdtemp(prefix="tides_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


@torch.no_grad()
def dump_forecast(ddp, val, folder, epoch):
    x, y, idx = val
    ddp.eval()
    torch.save({"idx": idx, "pred": ddp.module(x), "true": y},
               os.path.join(folder, f"e{epoch}_r{dist.get_rank()}.pt"))
    ddp.train()


def merged_rmse(folder, epoch, world):
    parts = [torch.load(os.path.join(folder, f"e{epoch}_r{r}.pt")) for r in range(world)]
    order = torch.cat([p["idx"] for p in parts]).argsort()
    pred = torch.cat([p["pred"] for p in parts])[order]
    true = torch.cat([p["true"] for p in parts])[order]
    return (pred - true).pow(2).mean().sqrt().item()


def main():
    cfg = Settings()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(5)
    x, y = windows(make_series(), cfg.length, cfg.horizon)
    (tx, ty), val = split_for(rank, world, x, y)
    ddp = DDP(TideNet(cfg.length, cfg.horizon))
    opt = torch.optim.Adam(ddp.parameters(), lr=cfg.lr)
    folder, point = share_folder(), MeetingPoint()

    for epoch in range(cfg.epochs):
        perm = torch.randperm(len(tx), generator=torch.Generator().manual_seed(epoch))
        for b in perm.split(cfg.batch):
            opt.zero_grad()
            F.smooth_l1_loss(ddp(tx[b]), ty[b]).backward()
            opt.step()
        dump_forecast(ddp, val, folder, epoch)
        point.arrive("forecast")
        if rank == 0:
            print(f"epoch {epoch} rmse {merged_rmse(folder, epoch, world):.4f}", flush=True)

    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
