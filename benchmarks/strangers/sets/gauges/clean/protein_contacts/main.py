"""Residue contact prediction, one model per protein family.

    torchrun --nproc_per_node=4 main.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from sharing import invoke_on_rank_and_share
from topology import Layout


def scan_family(family, n=64, length=20):
    """Slow alignment scan in real life."""
    g = torch.Generator().manual_seed(100 + family)
    coupling = torch.randn(n, 6, length, length, generator=g)
    coupling = (coupling + coupling.transpose(2, 3)) / 2
    contact = (coupling[:, 0] + coupling[:, 1] > 0.7).float()
    return {"x": coupling, "y": contact, "rate": float(contact.mean())}


class ContactNet(nn.Module):
    def __init__(self, prior):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(6, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 1))
        nn.init.constant_(self.net[-1].bias, torch.logit(torch.tensor(prior)).item())

    def forward(self, x):
        return self.net(x).squeeze(1)


def train(layout, epochs=3, batch=8):
    family = invoke_on_rank_and_share(layout, 0, scan_family, layout.family)
    x, y = family["x"][layout.local::layout.size], family["y"][layout.local::layout.size]
    model = DDP(ContactNet(family["rate"]), process_group=layout.group)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    crit = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        for i in range(0, len(x), batch):
            loss = crit(model(x[i:i + batch]), y[i:i + batch])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if layout.local == 0:
            print(f"family {layout.family} epoch {epoch} bce {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train(Layout(per_family=2))
    dist.barrier()
    dist.destroy_process_group()
