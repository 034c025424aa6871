"""Contrastive pretraining with NumPy augmentations in loader workers, method and data in modules (solo-learn layout)."""
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from contrast_views_lib.methods import METHODS
from contrast_views_lib.pretrain_dataloader import prepare_dataloader


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--method", default="simclr", choices=METHODS)
    parser.add_argument("--max_epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--num_workers", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=5)
    return parser.parse_args()


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(args.seed)
    model = DistributedDataParallel(METHODS[args.method]())
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.max_epochs)
    loader, sampler = prepare_dataloader(args)
    for epoch in range(args.max_epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(2)
        for views, _ in loader:
            loss, spread = model(views[:, 0], views[:, 1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += torch.tensor([loss.item(), spread.item()])
        scheduler.step()
        dist.all_reduce(total)
        total /= len(loader) * dist.get_world_size()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} nce {total[0]:.4f} z_std {total[1]:.4f}", flush=True)
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
