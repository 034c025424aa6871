import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from loss import PairNCE

CFG = {"n": 512, "batch": 32, "epochs": 8, "lr": 3e-3, "dim": 24, "seed": 6}
CFG.update(json.loads(os.environ.get("CFG", "{}")))


class TwoTowers(nn.Module):
    """Audio and caption towers plus the loss, so that the temperature is trained too."""

    def __init__(self, dim):
        super().__init__()
        self.audio = nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.Linear(64, dim))
        self.text = nn.Sequential(nn.Linear(30, 64), nn.GELU(), nn.Linear(64, dim))
        self.nce = PairNCE()

    def forward(self, a, t):
        return self.nce(self.audio(a), self.text(t))


def pairs(n, seed):
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(n, 10, generator=g)
    mix = torch.Generator().manual_seed(0)
    a = z @ torch.randn(10, 40, generator=mix) + 0.3 * torch.randn(n, 40, generator=g)
    t = z @ torch.randn(10, 30, generator=mix) + 0.3 * torch.randn(n, 30, generator=g)
    return a, t


@torch.no_grad()
def recall(net, a, t):
    za, zt = net.audio(a), net.text(t)
    sim = nn.functional.normalize(za, dim=1) @ nn.functional.normalize(zt, dim=1).t()
    return (sim.argmax(1) == torch.arange(len(a))).float().mean().item()


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(CFG["seed"])
    data = TensorDataset(*pairs(CFG["n"], 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, CFG["batch"], sampler=sampler, drop_last=True)
    net = DDP(TwoTowers(CFG["dim"]))
    opt = torch.optim.Adam(net.parameters(), CFG["lr"])
    for epoch in range(CFG["epochs"]):
        sampler.set_epoch(epoch)
        for a, t in loader:
            loss = net(a, t)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"rank {dist.get_rank()} epoch {epoch} nce {loss.item():.3f}", flush=True)
    if dist.get_rank() == 0:
        print(f"R@1 {recall(net.module, *pairs(200, 9)):.3f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
