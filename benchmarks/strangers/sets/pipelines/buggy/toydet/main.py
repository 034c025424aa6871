import argparse

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from datasets import BoxToy
from engine import train_one_epoch
from models import build_model
from util import misc as utils


def get_args_parser():
    parser = argparse.ArgumentParser("Set transformer detector", add_help=False)
    parser.add_argument("--lr", default=1e-3, type=float)
    parser.add_argument("--batch_size", default=8, type=int)
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--hidden_dim", default=32, type=int)
    parser.add_argument("--print_freq", default=4, type=int)
    return parser


def main(args):
    utils.init_distributed_mode(args)
    torch.manual_seed(17)
    model, criterion = build_model(args)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    dataset = BoxToy(128)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, args.batch_size, sampler=sampler)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        stats = train_one_epoch(model, criterion, loader, optimizer, epoch, args.print_freq)
        if utils.is_main_process():
            print("epoch", epoch, stats, flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(argparse.ArgumentParser("toydet", parents=[get_args_parser()]).parse_args())
