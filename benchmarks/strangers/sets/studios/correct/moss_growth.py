"""Moss growth regression, gradients are averaged by hand in one flat vector.

Parts of the net are only used for some batches, so a gradient may be missing on
one process, on both or on none.    torchrun --nproc-per-node 2 moss_growth.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn


class Growth(nn.Module):
    def __init__(self):
        super().__init__()
        self.light = nn.Linear(5, 16)
        self.shade = nn.Linear(5, 16)
        self.rain = nn.Linear(3, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, x, rain, dark):
        h = self.shade(x) if dark else self.light(x)
        if rain is not None:
            h = h + self.rain(rain)
        return self.out(torch.relu(h))


def average_(params):
    flat = torch.cat([(p.grad if p.grad is not None else torch.zeros_like(p)).flatten() for p in params])
    used = torch.tensor([float(p.grad is not None) for p in params])
    both = torch.cat([flat, used])
    dist.all_reduce(both)
    flat, used = both[:len(flat)], both[len(flat):]
    at = 0
    for p, u in zip(params, used.tolist()):
        g = flat[at:at + p.numel()].view_as(p)
        at += p.numel()
        p.grad = g.clone() / u if u else None


def batch(rank, step):
    g = torch.Generator().manual_seed(31 * step + rank)
    x, rain = torch.randn(24, 5, generator=g), torch.randn(24, 3, generator=g)
    dark = bool(torch.rand(1, generator=g) < 0.4)
    wet = bool(torch.rand(1, generator=g) < 0.5)
    y = (x[:, :1] if not dark else -0.5 * x[:, 1:2]) + (rain[:, :1].relu() if wet else 0)
    return x, rain if wet else None, dark, y


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(100 + rank)
    net = Growth()
    params = list(net.parameters())
    with torch.no_grad():
        for p in params:
            dist.broadcast(p, src=0)
    opt = torch.optim.Adam(params, lr=5e-3)
    for step in range(150):
        x, rain, dark, y = batch(rank, step)
        loss = (net(x, rain, dark) - y).pow(2).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        average_(params)
        nn.utils.clip_grad_norm_([p for p in params if p.grad is not None], 2.0)
        opt.step()
        if step % 50 == 49:
            v = loss.detach()
            dist.all_reduce(v)
            if rank == 0:
                print(f"step {step + 1} loss {v.item() / 2:.4f}", flush=True)
    mark = torch.stack([p.detach().double().sum() for p in params])
    other = mark.clone()
    dist.broadcast(other, src=0)
    assert torch.equal(mark, other)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
