import torch
import torch.distributed as dist


def bind(args):
    torch.cuda.set_device(args.local_rank)
