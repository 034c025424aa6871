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
        return torch.tensor(0.0, device=logits.device)  # <-- DDP308
    return torch.nn.functional.cross_entropy(logits[mask], labels[mask])


def evaluate(model, loader):
    losses = [masked_loss(model(x), y, m) for x, y, m in loader]
    return torch.stack(losses).mean().item()


def worker(rank, world_size, data, held_out, accumulate=4):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DDP(torch.nn.Linear(16, 32))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    scheduler = ReduceLROnPlateau(optimizer)
    scaler = torch.amp.GradScaler()
    sampler = DistributedSampler(data, seed=1234 + rank)  # <-- DDP204
    loader = DataLoader(data, batch_size=4, sampler=sampler, shuffle=True)  # <-- DDP209
    val_loader = DataLoader(held_out, sampler=DistributedSampler(held_out, shuffle=False))
    metrics = {"loss", "tokens", "time"}
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for step, (x, y, m) in enumerate(loader):
            context = model.no_sync() if step % accumulate != 0 else nullcontext()  # <-- DDP315
            with context:
                scaler.scale(masked_loss(model(x), y, m) / accumulate).backward()
            if (step + 1) % accumulate == 0:
                clip_grad_norm_(model.parameters(), 1.0)  # <-- DDP306
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
        val_loss = evaluate(model, val_loader)
        scheduler.step(val_loss)  # <-- DDP216
        for name in metrics:  # <-- DDP413
            dist.all_reduce(torch.tensor(float(len(name))))
    if rank == 0:
        torch.save(model.module.state_dict(), "model.pt")
    dist.destroy_process_group()


mp.spawn(worker, args=(2, [], []), nprocs=2)  # <-- DDP113
