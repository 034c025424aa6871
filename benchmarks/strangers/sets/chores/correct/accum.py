import argparse
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--accum", type=int, default=4)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    x = torch.randn(352, 10)
    data = TensorDataset(x, x.sum(1, keepdim=True).sin())
    torch.manual_seed(50 + rank)
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(10, 48), nn.Dropout(0.1), nn.ReLU(), nn.Linear(48, 1)))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        opt.zero_grad()
        for i, (xb, yb) in enumerate(loader):
            last = i + 1 == len(loader)
            update = (i + 1) % args.accum == 0 or last
            window = len(loader) % args.accum if i >= len(loader) // args.accum * args.accum else args.accum
            with nullcontext() if update else model.no_sync():
                loss = nn.functional.mse_loss(model(xb), yb)
                (loss / window).backward()
            if not update:
                continue
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
        if rank == 0:
            print(f"epoch {epoch} last loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
