"""Streaming access to the yield survey: one part file per county."""
import os

import torch
from torch.utils.data import IterableDataset

N_COUNTIES, PLOTS, BANDS = 12, 48, 8


def write_survey(folder):
    g = torch.Generator().manual_seed(3)
    w = torch.linspace(-1, 1, BANDS)
    for c in range(N_COUNTIES):
        soil = 0.6 * torch.randn((), generator=g)
        x = torch.randn(PLOTS, BANDS, generator=g) + soil
        y = torch.relu(x @ w + 2.0 + soil) + 0.1 * torch.randn(PLOTS, generator=g)
        torch.save({"x": x, "y": y, "id": torch.arange(PLOTS) + c * PLOTS}, os.path.join(folder, f"county_{c:02d}.pt"))


class Survey(IterableDataset):
    def __init__(self, folder, part, parts):
        self.files = sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".pt"))
        self.files = self.files[part::parts]
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        g = torch.Generator().manual_seed(self.epoch)
        for k in torch.randperm(len(self.files), generator=g).tolist():
            rec = torch.load(self.files[k])
            for i in torch.randperm(len(rec["y"]), generator=g).tolist():
                yield rec["x"][i], rec["y"][i], rec["id"][i]
