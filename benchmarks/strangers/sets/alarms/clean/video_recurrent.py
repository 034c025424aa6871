"""Frame-wise video model: the fusion block uses the memory of the previous frame of a clip."""
import torch
import torch.distributed as dist
import torch.nn as nn


class _AllReduceSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, group):
        ctx.group, t = group, t.clone()
        dist.all_reduce(t, group=group)
        return t

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g, group=ctx.group)
        return g, None


class GlobalNorm(nn.Module):
    """Normalises features over the batch of all workers."""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.group = dist.new_group()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim)), eps

    def forward(self, x):
        stats = torch.cat([x.mean(0), x.pow(2).mean(0)])
        mean, sq = (_AllReduceSum.apply(stats, self.group) / dist.get_world_size()).chunk(2)
        return (x - mean) / (sq - mean ** 2 + self.eps).sqrt() * self.weight + self.bias


class VideoNet(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(20, dim), nn.ReLU())
        self.fuse = nn.Sequential(nn.Linear(2 * dim, dim), GlobalNorm(dim), nn.ReLU())
        self.head = nn.Linear(dim, 20)
        self.memory = None

    def forward(self, frame, first):
        h = self.stem(frame)
        memory = torch.zeros_like(h) if first else self.memory
        h = self.fuse(torch.cat([h, memory], 1))
        self.memory = h.detach()
        return self.head(h)


def clips(rank):
    """Yields (frame, next frame, is first of a clip)."""
    g = torch.Generator().manual_seed(rank)
    lengths = [5, 7, 4] if rank == 0 else [6, 4, 6]
    for n in lengths:
        v = torch.randn(n + 1, 8, 20, generator=g).cumsum(0) * 0.2
        for t in range(n):
            yield v[t], v[t + 1], t == 0


def sync_grads(model):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = VideoNet()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for i, (x, target, first) in enumerate(clips(rank)):
        loss = (net(x, first) - target).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        sync_grads(net)
        opt.step()
        if rank == 0 and i % 4 == 0:
            print(f"frame {i} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
