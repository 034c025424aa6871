"""Semi-supervised stripe segmentation with a mean teacher (U2PL-like file layout)."""
import argparse
import logging

import torch
import torch.distributed as dist

from mean_teacher_seg_lib.builder import build_learner
from mean_teacher_seg_lib.data import labelled_loader, unlabelled_loader
from mean_teacher_seg_lib.utils import AverageMeter, set_seed, setup_logger


def get_parser():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--seed", type=int, default=2)
    p.add_argument("--ema-decay", type=float, default=0.97)
    p.add_argument("--unsup-weight", type=float, default=1.0)
    p.add_argument("--lr", type=float, default=5e-3)
    return p


def main():
    args = get_parser().parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    log = setup_logger(rank)
    set_seed(args.seed + rank)

    learner = build_learner(args)
    sup, sup_sampler = labelled_loader(batch=4)
    unsup, unsup_sampler = unlabelled_loader(batch=4)
    for epoch in range(args.epochs):
        sup_sampler.set_epoch(epoch)
        unsup_sampler.set_epoch(epoch)
        meters = {"sup": AverageMeter(), "unsup": AverageMeter()}
        for (x, y), u in zip(sup, unsup):
            for name, value in learner.step(x, y, u).items():
                meters[name].update(value)
        averages = {k: m.reduced() for k, m in meters.items()}
        log.log(logging.INFO, "epoch %d %s", epoch, " ".join(f"{k} {v:.4f}" for k, v in averages.items()))
    if rank == 0:
        learner.export("teacher")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
