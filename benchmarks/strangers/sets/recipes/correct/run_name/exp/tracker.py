import json
import os

import torch.distributed as dist

from .naming import run_name


class Tracker:
    def __init__(self, root):
        self.root, self.rank, self.rows = root, dist.get_rank(), []

    def __enter__(self):
        self.dir = os.path.join(self.root, run_name())
        if self.rank == 0:
            os.makedirs(self.dir)
        dist.barrier()
        return self

    def log(self, **row):
        self.rows.append(row)

    def __exit__(self, *exc):
        with open(os.path.join(self.dir, f"rank{self.rank}.json"), "w") as f:
            json.dump(self.rows, f)
        dist.barrier()
        if self.rank == 0:
            print(sorted(os.listdir(self.dir)), flush=True)
        return False
