import random

import numpy as np
import torch
import torch.distributed as dist


def init_distributed_mode():
    dist.init_process_group(backend="gloo")


def fix_random_seeds(seed=31):
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def get_rank():
    return dist.get_rank() if dist.is_initialized() else 0


def cosine_scheduler(base, final, n):
    it = np.arange(n)
    return final + 0.5 * (base - final) * (1 + np.cos(np.pi * it / n))
