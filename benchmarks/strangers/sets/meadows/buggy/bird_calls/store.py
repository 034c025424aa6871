import os

import torch
import torch.distributed as dist


class BestStore:
    """Keeps the weights with the best validation accuracy on disk."""

    def __init__(self, folder, rank):
        self.folder = folder
        self.rank = rank
        self.best = -1.0
        if rank == 0:
            os.makedirs(folder, exist_ok=True)
            if os.path.exists(self.path):
                os.remove(self.path)

    @property
    def path(self):
        return os.path.join(self.folder, "best.pt")

    def offer(self, module, accuracy):
        if accuracy <= self.best:
            return
        self.best = accuracy
        if self.rank == 0:
            torch.save(module.state_dict(), self.path)

    def restore(self, module):
        module.load_state_dict(torch.load(self.path, map_location="cpu"))
