"""Image-text contrastive training with negatives from all ranks.

    torchrun --nproc_per_node=2 paired_views_clip.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class TwoTower(nn.Module):
    def __init__(self, image_dim=24, vocab=50, dim=16, scale=8.0):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(image_dim, 48), nn.ReLU(), nn.Linear(48, dim))
        self.words = nn.EmbeddingBag(vocab, 48)
        self.text = nn.Linear(48, dim)
        self.scale = scale

    def forward(self, image, words):
        a = F.normalize(self.image(image), dim=-1)
        b = F.normalize(self.text(self.words(words)), dim=-1)
        return a, b, self.scale


def gather_with_own_gradient(x):
    """Features of all ranks; only the local slice stays attached to the graph."""
    parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x.detach())
    parts[dist.get_rank()] = x
    return torch.cat(parts)


def clip_loss(a, b, scale):
    """Loss over the full matrix on every rank, times the number of ranks, because DDP divides by it."""
    world = dist.get_world_size()
    every_a, every_b = gather_with_own_gradient(a), gather_with_own_gradient(b)
    logits = scale * every_a @ every_b.t()
    target = torch.arange(len(logits))
    full = (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2
    return full, full * world


class Pairs:
    def __init__(self, seed, batch=16):
        self.g, self.batch = torch.Generator().manual_seed(seed), batch
        self.look = torch.randn(50, 24, generator=torch.Generator().manual_seed(0))

    def __iter__(self):
        while True:
            words = torch.randint(0, 50, (self.batch, 3), generator=self.g)
            yield self.look[words].mean(1) + 0.1 * torch.randn(self.batch, 24, generator=self.g), words


def main(steps=60):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(12)
    model = DistributedDataParallel(TwoTower())
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step, (image, words) in zip(range(1, steps + 1), Pairs(seed=rank)):
        shown, loss = clip_loss(*model(image, words))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {shown.item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
