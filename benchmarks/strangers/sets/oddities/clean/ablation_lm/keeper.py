"""Keeps the last few sharded snapshots of a run: one file per weight, like our big runs."""
import os
import re
import shutil

import torch
import torch.distributed as dist


class SnapshotKeeper:
    PATTERN = re.compile(r"step_(\d+)$")

    def __init__(self, root, keep=2):
        self.root = root
        self.keep = keep
        os.makedirs(root, exist_ok=True)

    def _dir(self, step):
        return os.path.join(self.root, f"step_{step:06d}")

    def write(self, step, state):
        folder = self._dir(step)
        if dist.get_rank() == 0:
            os.makedirs(folder, exist_ok=True)
            for name, tensor in state.items():
                for i, piece in enumerate(tensor.reshape(-1).split(24)):
                    torch.save(piece.clone(), os.path.join(folder, f"{name}.{i:03d}"))
        dist.barrier()
        if dist.get_rank() == 0:
            self.prune()

    def steps(self):
        found = (self.PATTERN.search(d) for d in os.listdir(self.root))
        return sorted(int(m.group(1)) for m in found if m)

    def prune(self):
        for step in self.steps()[:-self.keep]:
            shutil.rmtree(self._dir(step))
