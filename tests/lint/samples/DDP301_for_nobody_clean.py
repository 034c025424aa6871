"""Tells songs apart by their spectra; what a summary layer gives is bounded, and told by."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Songs(nn.Module):
    def __init__(self):
        super().__init__()
        self.frames, self.summary, self.kind = (
            nn.Linear(40, 24),
            nn.Linear(24, 24),
            nn.Linear(24, 6),
        )

    def forward(self, spectrum):
        heard = torch.relu(self.frames(spectrum)).mean(1)
        whole = torch.tanh(self.summary(heard))
        return self.kind(whole)


def main():
    dist.init_process_group("gloo")
    source = torch.Generator().manual_seed(dist.get_rank())
    model = DistributedDataParallel(Songs())
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(100):
        spectra = torch.rand(8, 12, 40, generator=source)
        kinds = torch.randint(0, 6, (8,), generator=source)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(spectra), kinds).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
