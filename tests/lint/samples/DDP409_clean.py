import atexit

import torch.distributed as dist


def leave():
    if dist.is_initialized():
        dist.destroy_process_group()


atexit.register(leave)
