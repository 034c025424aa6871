import os
from pathlib import Path

import torch
import torch.distributed as dist


def is_main_process():
    return not dist.is_initialized() or dist.get_rank() == 0


def save_on_master(*args, **kwargs):
    if is_main_process():
        torch.save(*args, **kwargs)


def init_distributed_mode(args):
    args.rank = int(os.environ["RANK"])
    args.world_size = int(os.environ["WORLD_SIZE"])
    args.distributed = args.world_size > 1
    dist.init_process_group(backend="gloo", world_size=args.world_size, rank=args.rank)
    dist.barrier()


def save_model(args, epoch, model, model_without_ddp, optimizer):
    output_dir = Path(args.output_dir)
    to_save = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": epoch,
    }
    save_on_master(to_save, output_dir / f"checkpoint-{epoch}.pth")
