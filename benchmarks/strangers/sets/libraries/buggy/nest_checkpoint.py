"""Masked speech-feature pretraining with a checkpoint callback (config in the style of exp_manager)."""
import os
import shutil
import tempfile
import time
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

CONFIG = {
    "model": {"feat": 20, "dim": 32, "masked": 6},
    "trainer": {"epochs": 3, "steps": 6, "lr": 0.003},
    "exp_manager": {"filename": "ssl-{val_loss:.3f}-{step}", "poll": 0.1},
}


def to_ns(node):
    return SimpleNamespace(**{k: to_ns(v) for k, v in node.items()}) if isinstance(node, dict) else node


class MaskedPredictor(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.enc = nn.GRU(cfg.feat, cfg.dim, batch_first=True)
        self.out = nn.Linear(cfg.dim, cfg.feat)

    def forward(self, x, mask):
        h, _ = self.enc(x.masked_fill(mask[..., None], 0.0))
        return self.out(h)


class CheckpointCallback:
    def __init__(self, cfg, folder):
        self.cfg, self.folder = cfg, folder

    def format_name(self, metrics):
        return os.path.join(self.folder, self.cfg.filename.format(**metrics) + ".ckpt")

    def on_validation_end(self, model, metrics):
        path = self.format_name(metrics)
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), path + ".part")
            os.replace(path + ".part", path)
        # shared storage: go on when the file is visible from here
        while not os.path.exists(path):
            time.sleep(self.cfg.poll)
        self.last = path


def masked_mse(model, x, mask):
    return nn.functional.mse_loss(model(x, mask)[mask], x[mask])


def validate(model, x, mask):
    with torch.no_grad():
        val_loss = masked_mse(model.module, x, mask)
    return val_loss.item()


def pretrain(cfg, folder):
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(MaskedPredictor(cfg.model))
    opt = torch.optim.Adam(model.parameters(), lr=cfg.trainer.lr)
    callback = CheckpointCallback(cfg.exp_manager, folder)
    gen = torch.Generator().manual_seed(500 + rank)
    draw = lambda n: (torch.randn(n, 15, cfg.model.feat, generator=gen),
                      torch.rand(n, 15, generator=gen).argsort(1) < cfg.model.masked)
    held_out = draw(16)
    step = 0
    for _ in range(cfg.trainer.epochs):
        for _ in range(cfg.trainer.steps):
            loss = masked_mse(model, *draw(8))
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
        callback.on_validation_end(model, {"val_loss": validate(model, *held_out), "step": step})
        if rank == 0:
            print("saved", os.path.basename(callback.last), flush=True)


def main():
    dist.init_process_group("gloo")
    where = [tempfile.mkdtemp(prefix="nest_")] if dist.get_rank() == 0 else [None]
    dist.broadcast_object_list(where)
    pretrain(to_ns(CONFIG), where[0])
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(where[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
