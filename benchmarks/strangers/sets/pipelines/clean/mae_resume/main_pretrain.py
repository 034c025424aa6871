import argparse
import os

import torch
import torch.nn as nn

import models_mae
import util.misc as misc
from engine_pretrain import train_one_epoch


def get_args_parser():
    p = argparse.ArgumentParser("pre-training", add_help=False)
    p.add_argument("--batch_size", default=16, type=int)
    p.add_argument("--epochs", default=2, type=int)
    p.add_argument("--mask_ratio", default=0.75, type=float)
    p.add_argument("--blr", type=float, default=1e-3)
    p.add_argument("--output_dir", default="./output_dir")
    return p


def pretrain(args):
    torch.manual_seed(0 + args.rank)
    model = models_mae.mae_toy()
    model_without_ddp = model
    if args.distributed:
        model = nn.parallel.DistributedDataParallel(model)
        model_without_ddp = model.module
    optimizer = torch.optim.AdamW(model_without_ddp.parameters(), lr=args.blr, betas=(0.9, 0.95))
    for epoch in range(args.epochs):
        loss = train_one_epoch(model, optimizer, epoch, args)
        misc.save_model(args=args, epoch=epoch, model=model, model_without_ddp=model_without_ddp, optimizer=optimizer)
    if misc.is_main_process():
        print(f"pretrained, loss {loss:.4f}", flush=True)


def finetune(args):
    encoder = models_mae.mae_toy()
    torch.distributed.barrier()
    checkpoint = torch.load(os.path.join(args.output_dir, f"checkpoint-{args.epochs - 1}.pth"))
    msg = encoder.load_state_dict(checkpoint["model"])
    print(args.rank, msg, flush=True)
    head = nn.Linear(encoder.dim, 2)
    probe = nn.parallel.DistributedDataParallel(head)
    loss = probe(encoder.encode(torch.randn(8, 16, encoder.patch))).square().mean()
    loss.backward()


def main(args):
    misc.init_distributed_mode(args)
    os.makedirs(args.output_dir, exist_ok=True)
    pretrain(args)
    finetune(args)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(argparse.ArgumentParser(parents=[get_args_parser()]).parse_args())
