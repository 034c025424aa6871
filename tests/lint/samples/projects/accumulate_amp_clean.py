"""Language model with accumulation, mixed precision and a plateau scheduler."""

from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils import clip_grad_norm_
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, DistributedSampler


def masked_loss(logits, labels, mask):
    if mask.sum() == 0:
        return logits.sum() * 0
    return torch.nn.functional.cross_entropy(logits[mask], labels[mask])


def evaluate(model, loader):
    losses = [masked_loss(model(x), y, m) for x, y, m in loader]
    total = torch.stack(losses).mean()
    dist.all_reduce(total, op=dist.ReduceOp.AVG)
    return total.item()


def worker(rank, world_size, data, held_out, accumulate=4):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DDP(torch.nn.Linear(16, 32))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    scheduler = ReduceLROnPlateau(optimizer)
    scaler = torch.amp.GradScaler()
    sampler = DistributedSampler(data, seed=1234)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    val_loader = DataLoader(held_out, sampler=DistributedSampler(held_out, shuffle=False))
    metrics = {"loss", "tokens", "time"}
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for step, (x, y, m) in enumerate(loader):
            stepping = (step + 1) % accumulate == 0
            with nullcontext() if stepping else model.no_sync():
                scaler.scale(masked_loss(model(x), y, m) / accumulate).backward()
            if stepping:
                scaler.unscale_(optimizer)
                clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
        val_loss = evaluate(model, val_loader)
        scheduler.step(val_loss)
        for name in sorted(metrics):
            dist.all_reduce(torch.tensor(float(len(name))))
    if rank == 0:
        torch.save(model.module.state_dict(), "model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(2, [], []), nprocs=2)
