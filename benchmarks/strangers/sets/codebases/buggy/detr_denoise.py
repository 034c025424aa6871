"""A tiny DETR with contrastive denoising queries on generated pictures (DINO / RT-DETR structure)."""
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler

from detr_denoise_lib.data import Pictures, collate_fn
from detr_denoise_lib.engine import SetCriterion, train_one_epoch
from detr_denoise_lib.model import build_model


def get_args_parser():
    parser = argparse.ArgumentParser("tiny denoising detector", add_help=False)
    parser.add_argument("--lr", default=2e-3, type=float)
    parser.add_argument("--batch_size", default=2, type=int)
    parser.add_argument("--epochs", default=3, type=int)
    parser.add_argument("--num_queries", default=6, type=int)
    parser.add_argument("--num_denoising", default=4, type=int)
    parser.add_argument("--clip_max_norm", default=0.5, type=float)
    return parser


def main(args):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(42 + rank)
    model = DistributedDataParallel(build_model(args))
    criterion = SetCriterion({"loss_ce": 1.0, "loss_bbox": 5.0, "loss_ce_dn": 1.0, "loss_bbox_dn": 5.0})
    decay = [p for n, p in model.named_parameters() if "backbone" not in n]
    backbone = [p for n, p in model.named_parameters() if "backbone" in n]
    optimizer = torch.optim.AdamW([{"params": decay}, {"params": backbone, "lr": args.lr / 2}], lr=args.lr)
    dataset = Pictures(160, seed=0)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_sampler=BatchSampler(sampler, args.batch_size, drop_last=True),
                        collate_fn=collate_fn)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        stats = train_one_epoch(model, criterion, loader, optimizer, args.clip_max_norm)
        if rank == 0:
            print(f"Epoch: [{epoch}] " + "  ".join(f"{k}: {v:.4f}" for k, v in stats.items()), flush=True)
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main(argparse.ArgumentParser(parents=[get_args_parser()]).parse_args())
