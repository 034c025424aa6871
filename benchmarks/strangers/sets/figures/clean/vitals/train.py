import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from config import TrainConfig
from data import make_datasets
from utils import log, set_seed


def evaluate(model, loader):
    model.eval()
    stats = torch.zeros(2)
    with torch.no_grad():
        for x, y in loader:
            stats[0] += (model(x).argmax(1) == y).sum()
            stats[1] += len(y)
    dist.all_reduce(stats)
    return (stats[0] / stats[1]).item()


def main():
    cfg = TrainConfig()
    dist.init_process_group("gloo")
    set_seed(cfg.seed, dist.get_rank())

    train_set, val_set = make_datasets(cfg)
    sampler = DistributedSampler(train_set, shuffle=True, seed=cfg.seed)
    train_loader = DataLoader(train_set, batch_size=cfg.batch_size, sampler=sampler, drop_last=True)
    val_loader = DataLoader(val_set, batch_size=64, sampler=DistributedSampler(val_set, shuffle=False))

    model = DDP(torch.nn.Sequential(
        torch.nn.Linear(cfg.n_feats, cfg.hidden), torch.nn.GELU(), torch.nn.Linear(cfg.hidden, cfg.n_classes)))
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)

    best = 0.0
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in train_loader:
            x = x + cfg.jitter * torch.randn_like(x)
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        acc = evaluate(model, val_loader)
        log(f"[{epoch}] loss={loss.item():.3f} val_acc={acc:.4f}")
        if acc > best:
            best = acc
            if dist.get_rank() == 0:
                os.makedirs(cfg.out_dir, exist_ok=True)
                torch.save(model.module.state_dict(), os.path.join(cfg.out_dir, "best.pt"))
    log(f"best val_acc {best:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
