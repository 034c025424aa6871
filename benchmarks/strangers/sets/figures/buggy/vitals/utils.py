import random

import numpy as np
import torch
import torch.distributed as dist


def set_seed(seed, rank=0):
    """Every process draws its own jitter, so the seed is offset by the rank."""
    seed = seed + 12345 * rank
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def log(msg):
    if dist.get_rank() == 0:
        print(msg, flush=True)
