import logging
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger(__name__)


@dataclass
class ModelConfig:
    vocab: int = 400
    d_model: int = 48
    n_layers: int = 2


@dataclass
class TrainConfig:
    model: ModelConfig = field(default_factory=ModelConfig)
    save_folder: str = "runs/pretrain"
    steps: int = 15
    batch: int = 8
    seq: int = 12
    lr: float = 1e-3
    warm_start_steps: int = 150


class LM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.Embedding(cfg.vocab, cfg.d_model)
        self.ff = nn.ModuleList(nn.Linear(cfg.d_model, cfg.d_model) for _ in range(cfg.n_layers))
        self.out = nn.Linear(cfg.d_model, cfg.vocab)

    def forward(self, ids):
        h = self.emb(ids)
        for layer in self.ff:
            h = h + F.gelu(layer(h))
        return self.out(h)


def sample(cfg, gen):
    s = torch.randint(0, cfg.model.vocab, (cfg.batch, 1), generator=gen)
    ids = (s + torch.arange(cfg.seq + 1)) % cfg.model.vocab
    return ids[:, :-1], ids[:, 1:]


def lm_loss(model, batch):
    x, y = batch
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def write_initial_checkpoint(cfg):
    """A short single-process warm start, stored as step0."""
    torch.manual_seed(6198)
    model = LM(cfg.model)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    gen = torch.Generator().manual_seed(0)
    for _ in range(cfg.warm_start_steps):
        opt.zero_grad()
        lm_loss(model, sample(cfg, gen)).backward()
        opt.step()
    folder = Path(cfg.save_folder) / "step0"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    torch.save(model.state_dict(), folder / "model.pt")
    torch.save(opt.state_dict(), folder / "optim.pt")
    log.info("initial checkpoint written to %s", folder)


def load_checkpoint(cfg, name, model):
    folder = Path(cfg.save_folder) / name
    model.load_state_dict(torch.load(folder / "model.pt"))


def main(cfg):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING)

    if rank == 0:
        write_initial_checkpoint(cfg)
    dist.barrier()

    model = LM(cfg.model)
    load_checkpoint(cfg, "step0", model)
    model = DDP(model)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    gen = torch.Generator().manual_seed(100 + rank)
    for step in range(1, cfg.steps + 1):
        opt.zero_grad()
        loss = lm_loss(model, sample(cfg, gen))
        loss.backward()
        opt.step()
        if step % 5 == 0:
            log.info("step %d loss %.3f", step, loss.item())
    dist.barrier()
    if rank == 0:
        shutil.rmtree(cfg.save_folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(TrainConfig())
