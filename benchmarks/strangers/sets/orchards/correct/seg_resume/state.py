import os

import torch
import torch.distributed as dist


class Snapshot:
    """One file with all that is needed to go on. Written by rank 0, read by all."""

    def __init__(self, folder, **parts):
        self.path = os.path.join(folder, "last.ckpt")
        self.parts = parts
        os.makedirs(folder, exist_ok=True)

    def save(self, epoch):
        if dist.get_rank() == 0:
            blob = {k: v.state_dict() for k, v in self.parts.items()}
            blob["epoch"] = epoch
            torch.save(blob, self.path + ".new")
            os.replace(self.path + ".new", self.path)
        dist.barrier()

    def load(self):
        """Epoch to begin with."""
        there = torch.tensor(int(os.path.exists(self.path)))
        dist.broadcast(there, src=0)
        if not there:
            return 0
        blob = torch.load(self.path, map_location="cpu", weights_only=True)
        for k, v in self.parts.items():
            v.load_state_dict(blob[k])
        return blob["epoch"] + 1
