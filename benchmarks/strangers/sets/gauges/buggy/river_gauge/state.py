"""Run state on disk."""
import os

import torch


class StateFile:
    def __init__(self, folder, rank):
        self.path = os.path.join(folder, "state.pt")
        self.rank = rank

    def save(self, model, optimizer, epoch):
        if self.rank == 0:
            tmp = self.path + ".tmp"
            torch.save({"net": model.module.state_dict(), "opt": optimizer.state_dict(), "epoch": epoch}, tmp)
            os.replace(tmp, self.path)

    def read(self):
        if self.rank != 0 or not os.path.exists(self.path):
            return None
        return torch.load(self.path, map_location="cpu", weights_only=True)
