"""Corner detector whose meters are brought together once per epoch; the main process then prints what is stored."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Gauge:
    def __init__(self):
        self.sum = self.n = 0.0
        self.latest = float("nan")

    def add(self, v, n):
        self.sum += v * n
        self.n += n

    def merge(self):
        both = torch.tensor([self.sum, self.n], dtype=torch.float64)
        dist.all_reduce(both)
        self.latest = (both[0] / both[1].clamp(min=1)).item()
        self.sum = self.n = 0.0

    @property
    def value(self):
        return self.latest

    def __str__(self):
        return f"{self.value:.4f}"


class Panel:
    def __init__(self, *names):
        self.gauges = {n: Gauge() for n in names}

    def __getitem__(self, name):
        return self.gauges[name]

    def merge(self):
        for g in self.gauges.values():
            g.merge()

    def __str__(self):
        return " | ".join(f"{k} {g}" for k, g in self.gauges.items())


def corners(n, g):
    xy = torch.rand(n, 2, generator=g)
    grid = torch.linspace(0, 1, 12)
    dx = (grid - xy[:, :1]).abs()[:, None, :]
    dy = (grid - xy[:, 1:]).abs()[:, :, None]
    return torch.exp(-20 * (dx + dy)).unsqueeze(1) + 0.05 * torch.randn(n, 1, 12, 12, generator=g), xy


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(9)
    rank = dist.get_rank()
    g = torch.Generator().manual_seed(100 + rank)
    net = DDP(nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(288, 2), nn.Sigmoid()))
    opt = torch.optim.Adam(net.parameters(), 1e-2)
    panel = Panel("l1", "within")
    for epoch in range(3):
        for _ in range(12):
            x, xy = corners(16, g)
            pred = net(x)
            loss = (pred - xy).abs().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            panel["l1"].add(loss.item(), len(x))
            panel["within"].add(((pred - xy).norm(dim=1) < 0.1).float().mean().item(), len(x))
        panel.merge()
        if rank == 0:
            print(f"epoch {epoch}: {panel}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
