"""A head that some batches do not need: its output is none there, and its weights are added."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 16)
        self.whole = nn.Linear(16, 2)
        self.edges = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x, marked):
        hidden = self.trunk(x)
        if marked.any():
            return self.whole(hidden), self.edges(hidden[marked]), hidden.new_zeros(())
        nothing = sum(p.sum() for p in self.edges.parameters()) * 0.0
        return self.whole(hidden), None, nothing


def main():
    dist.init_process_group("gloo")
    model = DDP(Segmenter())
    optimizer = torch.optim.Adam(model.parameters())
    chance = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(100):
        x = torch.randn(16, 8, generator=chance)
        marked = torch.rand(16, generator=chance) < 0.05
        y, edges = x[:, :2].argmax(1), x[:, 2:6].argmax(1)
        whole, found, nothing = model(x, marked)
        loss = F.cross_entropy(whole, y) + nothing
        if found is not None:
            loss = loss + F.cross_entropy(found, edges[marked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
