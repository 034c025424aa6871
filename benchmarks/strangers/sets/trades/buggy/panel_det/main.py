import argparse
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, DistributedSampler

import misc as utils
from data import SolarPanels
from engine import evaluate, train_one_epoch


def get_args_parser():
    parser = argparse.ArgumentParser("panel detector", add_help=False)
    parser.add_argument("--lr", default=2e-3, type=float)
    parser.add_argument("--batch_size", default=8, type=int)
    parser.add_argument("--epochs", default=3, type=int)
    parser.add_argument("--output_dir", default="")
    parser.add_argument("--seed", default=42, type=int)
    return parser


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 25, 32), nn.ReLU(), nn.Linear(32, 4), nn.Sigmoid(),
    )


def main(args):
    dist.init_process_group("gloo")
    torch.manual_seed(args.seed + utils.get_rank())

    model = nn.parallel.DistributedDataParallel(build_model())
    model_without_ddp = model.module
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    dataset_train, dataset_val = SolarPanels(160, seed=1), SolarPanels(48, seed=2)
    sampler_train = DistributedSampler(dataset_train)
    sampler_val = DistributedSampler(dataset_val, shuffle=False)
    loader_train = DataLoader(dataset_train, args.batch_size, sampler=sampler_train, drop_last=True)
    loader_val = DataLoader(dataset_val, args.batch_size, sampler=sampler_val)

    output_dir = args.output_dir or tempfile.mkdtemp(prefix="panel_")
    best = float("inf")
    for epoch in range(args.epochs):
        sampler_train.set_epoch(epoch)
        train_stats = train_one_epoch(model, loader_train, optimizer, epoch)
        test_logger = evaluate(model, loader_val)

        if utils.is_main_process():
            test_logger.synchronize_between_processes()
            test_stats = {k: m.global_avg for k, m in test_logger.meters.items()}
            log_stats = {
                **{f"train_{k}": v for k, v in train_stats.items()},
                **{f"test_{k}": v for k, v in test_stats.items()},
                "epoch": epoch,
            }
            with open(os.path.join(output_dir, "log.txt"), "a") as f:
                f.write(json.dumps(log_stats) + "\n")
            print(log_stats, flush=True)
            if test_stats["loss"] < best:
                best = test_stats["loss"]
                torch.save(model_without_ddp.state_dict(), os.path.join(output_dir, "best.pth"))

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(argparse.ArgumentParser(parents=[get_args_parser()]).parse_args())
