import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Papers:
    def __init__(self, folder):
        self.folder = folder

    def keep(self, state):
        torch.save(state, "papers/features.pt")  # <-- DDP503

    def train(self):
        dist.init_process_group("gloo")
        rows = torch.load("papers/features.pt", map_location="cpu")
        model = DistributedDataParallel(nn.Linear(8, 1))
        model(rows[dist.get_rank() :: dist.get_world_size()]).mean().backward()
