"""Random number helpers."""
import random

import numpy as np
import torch


def set_seed(seed, process_index=0):
    """Seed python, numpy and torch; every process draws its own augmentation noise."""
    seed = seed + process_index * 12345
    random.seed(seed)
    np.random.seed(seed % (2 ** 32))
    torch.manual_seed(seed)
    return seed
