"""The moving average of the weights lives on the main process only, which is also the only one that uses it."""
import copy
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def is_main_process():
    return int(os.environ.get("RANK", 0)) == 0


class ModelEma:
    def __init__(self, net, decay=0.95):
        self.shadow = copy.deepcopy(net).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, net):
        for s, p in zip(self.shadow.state_dict().values(), net.state_dict().values()):
            s.lerp_(p, 1 - self.decay) if s.is_floating_point() else s.copy_(p)


def moons(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=g)
    t = 3.14 * torch.rand(n, generator=g)
    x = torch.stack([torch.cos(t) + y, torch.sin(t) * (1 - 2 * y) + 0.5 * y], 1)
    return x + 0.1 * torch.randn(n, 2, generator=g), y


def main(epochs=4):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    model = DDP(net)
    ema = ModelEma(net) if is_main_process() else None
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    x, y = moons(320, 7 + dist.get_rank())
    vx, vy = moons(200, 1)
    for epoch in range(epochs):
        for xb, yb in zip(x.split(20), y.split(20)):
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if ema is not None:
                ema.update(net)
        if is_main_process():
            with torch.no_grad():
                acc = (ema.shadow(vx).argmax(1) == vy).float().mean().item()
            print(f"epoch {epoch} accuracy of the average {acc:.3f}", flush=True)
            torch.save({"model": net.state_dict(), "ema": ema.shadow.state_dict()}, "moons.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
