"""Detector described by a table of layers, with main and auxiliary branches."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

# from, module, arguments
BACKBONE = [
    (-1, "ConvAct", (3, 16, 2)),
    (-1, "ConvAct", (16, 24, 2)),
    (-1, "ConvAct", (24, 32, 1)),
]
HEAD = [
    (2, "Branch", (32, 6)),
    (1, "Branch", (24, 6)),
]


class ConvAct(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride, 1)

    def forward(self, x):
        return F.silu(self.conv(x))


class Branch(nn.Module):
    def __init__(self, cin, no):
        super().__init__()
        self.cv2 = nn.Conv2d(cin, cin, 3, 1, 1)
        self.cv3 = nn.Conv2d(cin, no, 1)

    def forward(self, x):
        return self.cv3(F.silu(self.cv2(x)))


def parse_model(rows):
    layers = nn.ModuleList()
    for i, (source, kind, args) in enumerate(rows):
        m = globals()[kind](*args)
        m.source, m.index = source, i
        layers.append(m)
    return layers


class DualModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = parse_model(BACKBONE + HEAD)

    def forward(self, x):
        kept, outputs = [], []
        for m in self.layers:
            if m.source != -1:
                x = kept[m.source]
            x = m(x)
            kept.append(x)
            if isinstance(m, Branch):
                outputs.append(x)
        return outputs


class ComputeLoss:
    def __init__(self, gains):
        self.gains = gains

    def __call__(self, outputs, targets):
        parts = []
        for gain, out in zip(self.gains, outputs):
            box = F.smooth_l1_loss(out[:, :4], targets[:, :4])
            obj = F.binary_cross_entropy_with_logits(out[:, 4:], targets[:, 4:])
            parts.append(gain * (box + obj))
        return sum(parts)


def batches(rank, n):
    g = torch.Generator().manual_seed(60 + rank)
    for _ in range(n):
        img = torch.rand(4, 3, 16, 16, generator=g)
        target = F.avg_pool2d(img, 4).repeat(1, 2, 1, 1)
        target[:, 4:] = (target[:, 4:] > 0.5).float()
        yield img, target


def train(gains, steps=10):
    rank = dist.get_rank()
    torch.manual_seed(2)
    model = DDP(DualModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    compute_loss = ComputeLoss(gains)
    for i, (img, target) in enumerate(batches(rank, steps)):
        loss = compute_loss(model(img), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and i % 5 == 0:
            print(f"{i}: rank 0 batch loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(gains=(1.0, 0.25))
    dist.destroy_process_group()
