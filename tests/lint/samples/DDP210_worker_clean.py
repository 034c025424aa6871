import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader


def seed_worker(worker_id):
    np.random.seed(torch.initial_seed() % 2**32)


def start(data):
    dist.init_process_group("gloo")
    return DataLoader(data, num_workers=2, worker_init_fn=seed_worker)
