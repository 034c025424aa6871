import os
import socket

import torch
from torch.nn.parallel import DistributedDataParallel


class Kept:
    def __init__(self, model, folder):
        self.model = DistributedDataParallel(model)
        self.path = os.path.join(folder, f"last-{socket.gethostname()}.pt")

    def resume(self):
        self.model.module.load_state_dict(torch.load(self.path, map_location="cpu"))

    def save(self):
        torch.save(self.model.module.state_dict(), self.path)  # <-- DDP503
