import torch
import torch.distributed as dist


def bind(args):
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
