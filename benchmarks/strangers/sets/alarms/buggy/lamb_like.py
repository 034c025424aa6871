"""Layer-wise adaptive optimizer (own class, old base-class free style) with a bit less memory."""
import math

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class FusedLamb:
    def __init__(self, params, lr=0.01, betas=(0.9, 0.999), weight_decay=0.01, eps=1e-6):
        self.params = [p for p in params if p.requires_grad]
        self.lr, self.betas, self.wd, self.eps = lr, betas, weight_decay, eps
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]
        self.t = 0

    def zero_grad(self):
        for p in self.params:
            if p.grad is not None:
                p.grad.detach_()
                p.grad.zero_()

    @torch.no_grad()
    def step(self):
        self.t += 1
        b1, b2 = self.betas
        for p, m, v in zip(self.params, self.m, self.v):
            m.mul_(b1).add_(p.grad, alpha=1 - b1)
            v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            mh, vh = m / (1 - b1 ** self.t), v / (1 - b2 ** self.t)
            update = mh / (vh.sqrt() + self.eps) + self.wd * p
            trust = p.norm() / update.norm().clamp(min=1e-8)
            p.add_(update, alpha=-self.lr * float(trust.clamp(0.1, 10)))


class Bow(nn.Module):
    def __init__(self, vocab=200, dim=32, classes=4):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim)
        self.clf = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, classes))

    def forward(self, ids):
        return self.clf(self.bag(ids))


def lr_at(step, warmup=5, total=30, peak=0.02):
    return peak * min(1.0, (step + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * step / total))


def train():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Bow(), gradient_as_bucket_view=True)
    optimizer = FusedLamb(model.parameters())
    g = torch.Generator().manual_seed(rank + 1)
    for step in range(30):
        label = torch.randint(0, 4, (32,), generator=g)
        ids = (torch.randint(0, 50, (32, 12), generator=g) + 50 * label[:, None]) % 200
        loss = nn.functional.cross_entropy(model(ids), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.lr = lr_at(step)
        optimizer.step()
        if rank == 0 and step % 10 == 9:
            print(f"step {step + 1} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    train()
    dist.destroy_process_group()
