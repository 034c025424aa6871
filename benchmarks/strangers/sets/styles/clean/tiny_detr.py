"""Toy set-prediction detector in the DETR layout (main / engine / misc)."""
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from tiny_detr_lib.data import ShapesOnCanvas, collate
from tiny_detr_lib.engine import train_one_epoch
from tiny_detr_lib.model import Detector, SetCriterion


def get_args():
    p = argparse.ArgumentParser("tiny detr")
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch_size", type=int, default=4)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=13)
    return p.parse_args()


def main(args):
    dist.init_process_group("gloo")
    torch.manual_seed(args.seed + dist.get_rank())
    dataset = ShapesOnCanvas(96, seed=args.seed)
    sampler = DistributedSampler(dataset, shuffle=True, seed=args.seed)
    loader = DataLoader(dataset, args.batch_size, sampler=sampler, collate_fn=collate, drop_last=True)

    model = DDP(Detector(queries=6))
    criterion = SetCriterion(eos_coef=0.3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        stats = train_one_epoch(model, criterion, loader, optimizer, epoch, max_norm=0.1)
        scheduler.step()
        if dist.get_rank() == 0:
            print(epoch, {k: round(v, 4) for k, v in sorted(stats.items())}, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(get_args())
