"""Segmentation toy: the auxiliary head is dropped after a warm-up."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


class SegNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.mid = nn.Conv2d(8, 8, 3, padding=1)
        self.aux = nn.Conv2d(8, classes, 1)
        self.head = nn.Conv2d(8, classes, 1)

    def forward(self, x, with_aux):
        low = self.stem(x).relu()
        out = {"out": self.head(self.mid(low).relu())}
        if with_aux:
            out["aux"] = self.aux(low)
        return out


def run(warmup=5, steps=12):
    rank = dist.get_rank()
    torch.manual_seed(3)
    net = nn.parallel.DistributedDataParallel(SegNet())
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    g = torch.Generator().manual_seed(50 + rank)
    for step in range(steps):
        img = torch.rand(4, 3, 12, 12, generator=g)
        mask = (img.argmax(1) + (img.sum(1) > 1.5).long()).clamp(max=3)
        out = net(img, step < warmup)
        loss = sum(F.cross_entropy(v, mask) * (1.0 if k == "out" else 0.4) for k, v in out.items())
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"rank {rank} done, loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run()
    dist.barrier()
    dist.destroy_process_group()
