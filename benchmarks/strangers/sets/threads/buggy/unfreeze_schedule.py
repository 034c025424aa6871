"""Transfer learning on plant spectra: the head alone for one epoch, then the trunk block by block."""
import contextlib
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as Wrap

CONFIG = """
model:   blocks=3 width=24 classes=4
optim:   lr=0.02 momentum=0.9
ddp:     static_graph=true bucket_cap_mb=5
run:     epochs=4 iters=8 batch=16
"""


def read_config(text):
    def cast(v):
        if v in ("true", "false"):
            return v == "true"
        return float(v) if "." in v else int(v)

    out = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        section, rest = line.split(":", 1)
        out[section] = {k: cast(v) for k, v in (kv.split("=") for kv in rest.split())}
    return out


class SpectralNet(nn.Module):
    """`depth` says how many of the upper blocks are tuned; below that only features are computed."""

    def __init__(self, blocks, width, classes):
        super().__init__()
        self.stem = nn.Linear(50, width)
        self.blocks = nn.ModuleList([nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
                                     for _ in range(blocks)])
        self.head = nn.Linear(width, classes)
        self.depth = 0

    def forward(self, x):
        frozen = len(self.blocks) - self.depth
        ctx = contextlib.nullcontext() if frozen <= 0 else torch.no_grad()
        with ctx:
            h = self.stem(x)
        for i, block in enumerate(self.blocks):
            with torch.no_grad() if i < frozen else contextlib.nullcontext():
                h = h + block(h)
        return self.head(h)


class Thaw:
    """Opens one more block at the start of each epoch after the first."""

    def __init__(self, net):
        self.net = net

    def epoch(self, n):
        self.net.depth = min(n, len(self.net.blocks))
        return self.net.depth


def spectra(n, g):
    y = torch.randint(0, 4, (n,), generator=g)
    grid = torch.linspace(0, 1, 50)
    peak = 0.2 + 0.2 * y[:, None] + 0.03 * torch.randn(n, 1, generator=g)
    return torch.exp(-((grid - peak) ** 2) / 0.005) + 0.2 * torch.randn(n, 50, generator=g), y


@contextlib.contextmanager
def session():
    dist.init_process_group("gloo")
    try:
        yield dist.get_rank()
    finally:
        dist.destroy_process_group()


def fit(cfg, rank):
    torch.manual_seed(8)
    net = SpectralNet(**cfg["model"])
    model = Wrap(net, **cfg["ddp"])
    thaw = Thaw(net)
    opt = torch.optim.SGD(model.parameters(), **cfg["optim"])
    g = torch.Generator().manual_seed(80 + rank)
    for epoch in range(cfg["run"]["epochs"]):
        depth = thaw.epoch(epoch)
        correct = 0
        for _ in range(cfg["run"]["iters"]):
            x, y = spectra(cfg["run"]["batch"], g)
            out = model(x)
            opt.zero_grad()
            nn.functional.cross_entropy(out, y).backward()
            opt.step()
            correct += (out.argmax(1) == y).sum().item()
        if rank == 0:
            n = cfg["run"]["iters"] * cfg["run"]["batch"]
            print(f"{Path(__file__).stem} epoch {epoch} depth {depth} train acc {correct / n:.2f}", flush=True)
    model = None


if __name__ == "__main__":
    with session() as rank:
        fit(read_config(CONFIG), rank)
