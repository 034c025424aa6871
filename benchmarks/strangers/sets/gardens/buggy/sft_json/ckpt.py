import os

import torch
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict


class CheckpointWriter:
    def __init__(self, folder, keep=2):
        self.folder, self.keep, self.written = folder, keep, []

    def snapshot(self, model):
        opts = StateDictOptions(full_state_dict=True, cpu_offload=True)
        return get_model_state_dict(model, options=opts)

    def write(self, model, step):
        weights = self.snapshot(model)
        path = os.path.join(self.folder, f"step{step:05d}.pt")
        torch.save({"step": step, "model": weights}, path)
        self.written.append(path)
        while len(self.written) > self.keep:
            os.remove(self.written.pop(0))
        return path
