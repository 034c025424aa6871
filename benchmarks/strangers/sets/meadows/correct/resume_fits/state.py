import os

import torch
import torch.distributed as dist


class Snapshots:
    """Process 0 writes; everybody reads after it has been written."""

    def __init__(self, folder):
        self.folder = folder
        if dist.get_rank() == 0:
            os.makedirs(folder, exist_ok=True)
        dist.barrier()

    def write(self, model, opt, epoch):
        if dist.get_rank() == 0:
            blob = {"model": model.module.state_dict(), "opt": opt.state_dict(), "epoch": epoch}
            tmp = os.path.join(self.folder, "last.tmp")
            torch.save(blob, tmp)
            os.replace(tmp, os.path.join(self.folder, "last.pt"))
        dist.barrier()

    def read(self, model, opt):
        path = os.path.join(self.folder, "last.pt")
        known = [os.path.exists(path) if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(known, src=0)
        if not known[0]:
            return 0
        blob = torch.load(path, map_location="cpu")
        model.module.load_state_dict(blob["model"])
        opt.load_state_dict(blob["opt"])
        return blob["epoch"] + 1
