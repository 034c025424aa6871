import logging
import random
import sys

import numpy as np
import torch
import torch.distributed as dist


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def setup_logger(rank):
    logger = logging.getLogger("seg")
    logger.setLevel(logging.INFO if rank == 0 else logging.WARNING)
    logger.addHandler(logging.StreamHandler(sys.stdout))
    return logger


class AverageMeter:
    def __init__(self):
        self.sum, self.n = 0.0, 0

    def update(self, value):
        self.sum += value
        self.n += 1

    def reduced(self):
        t = torch.tensor([self.sum, float(self.n)])
        dist.all_reduce(t)
        return (t[0] / t[1]).item()
