"""A one-scale detector of rectangles, with the options and set-up of a yolov7 train.py."""
import argparse
import logging
import os
from copy import deepcopy

import torch
import torch.distributed as dist
import yaml
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim import lr_scheduler

from yolo_rects_lib.datasets import create_dataloader
from yolo_rects_lib.loss import ComputeLoss
from yolo_rects_lib.model import Model, ModelEMA

logger = logging.getLogger(__name__)
HYP = """
lr0: 0.01
lrf: 0.1
momentum: 0.9
box: 2.0
obj: 1.0
hflip: 0.5
"""


def set_logging(rank):
    logging.basicConfig(format="%(message)s", level=logging.INFO if rank in (-1, 0) else logging.WARN)


def train(hyp, opt):
    rank = opt.global_rank
    torch.manual_seed(2 + rank)
    model = Model(ch=16)
    optimizer = torch.optim.SGD(model.parameters(), lr=hyp["lr0"], momentum=hyp["momentum"], nesterov=True)
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda x: (1 - x / opt.epochs) * (1 - hyp["lrf"]) + hyp["lrf"])
    ema = ModelEMA(model) if rank in (-1, 0) else None
    dataloader, dataset = create_dataloader(320, opt.batch_size, hyp=hyp, augment=True,
                                            rank=rank, world_size=opt.world_size)
    nb = len(dataloader)
    if rank != -1:
        model = DDP(model)
    compute_loss = ComputeLoss(hyp)
    logger.info(f"{len(dataset)} images, {nb} batches of {opt.batch_size} x {opt.world_size}")
    for epoch in range(opt.epochs):
        model.train()
        mloss = torch.zeros(2)
        if hasattr(dataloader.sampler, "set_epoch"):
            dataloader.sampler.set_epoch(epoch)
        optimizer.zero_grad()
        for i, (imgs, targets) in enumerate(dataloader):
            loss, loss_items = compute_loss(model(imgs), targets)
            if rank != -1:
                loss *= opt.world_size  # gradient averaged between devices in DDP mode
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if ema:
                ema.update(model)
            mloss = (mloss * i + loss_items) / (i + 1)
        scheduler.step()
        logger.info(f"{epoch}/{opt.epochs - 1} box {mloss[0]:.4f} obj {mloss[1]:.4f}")
    if rank in (-1, 0):
        final = deepcopy(ema.ema).eval()
        imgs, targets = next(iter(create_dataloader(64, 64, hyp=hyp, augment=False, seed=9)[0]))
        with torch.no_grad():
            _, items = compute_loss(final(imgs), targets)
        logger.info(f"val box {items[0]:.4f} obj {items[1]:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32, help="total batch size for all GPUs")
    parser.add_argument("--local_rank", type=int, default=-1, help="DDP parameter, do not modify")
    opt = parser.parse_args()
    opt.world_size = int(os.environ["WORLD_SIZE"]) if "WORLD_SIZE" in os.environ else 1
    opt.global_rank = int(os.environ["RANK"]) if "RANK" in os.environ else -1
    set_logging(opt.global_rank)
    opt.total_batch_size = opt.batch_size
    if opt.global_rank != -1:
        dist.init_process_group(backend="gloo", init_method="env://")
        assert opt.batch_size % opt.world_size == 0, "--batch-size must be multiple of device count"
        opt.batch_size = opt.total_batch_size // opt.world_size
    train(yaml.safe_load(HYP), opt)
    if opt.global_rank != -1:
        dist.barrier()
        dist.destroy_process_group()
