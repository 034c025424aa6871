"""A thin layer over torch.distributed, so that the recipes read like single-process code."""
import gzip
import os
import pickle
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Fabric:
    def __init__(self, backend="gloo", seed=0):
        torch.set_num_threads(1)
        dist.init_process_group(backend)
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(seed)
        where = [tempfile.mkdtemp(prefix="grid_load_") if self.rank == 0 else None]
        dist.broadcast_object_list(where)
        self.home = where[0]

    def setup(self, model):
        return DistributedDataParallel(model)

    def loader(self, data, batch, shuffle):
        return DataLoader(data, batch, sampler=DistributedSampler(data, shuffle=shuffle))

    def mean(self, value):
        t = torch.tensor([float(value)], dtype=torch.float64)
        dist.all_reduce(t)
        return t.item() / self.world

    def print(self, *text):
        if self.rank == 0:
            print(*text, flush=True)

    def save(self, name, **state):
        if self.rank == 0:
            path = os.path.join(self.home, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with gzip.open(path, "wb") as f:
                pickle.dump(state, f)
        dist.barrier()

    def load(self, name):
        with gzip.open(os.path.join(self.home, name), "rb") as f:
            return pickle.load(f)

    def close(self):
        dist.barrier()
        if self.rank == 0:
            for dirpath, _, files in os.walk(self.home, topdown=False):
                for f in files:
                    os.remove(os.path.join(dirpath, f))
                os.rmdir(dirpath)
        dist.destroy_process_group()
