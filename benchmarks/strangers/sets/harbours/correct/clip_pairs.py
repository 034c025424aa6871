"""Contrastive pairs over all ranks: gathered features carry no gradient, the own part is put back."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def gather_with_own(z):
    parts = [torch.empty_like(z) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, z.detach().contiguous())
    parts[dist.get_rank()] = z
    return torch.cat(parts)


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 8))
        self.text = nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Linear(32, 8))
        self.logit_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, a, b):
        return F.normalize(self.image(a), dim=-1), F.normalize(self.text(b), dim=-1), self.logit_scale.exp()


def clip_loss(za, zb, scale):
    za, zb = gather_with_own(za), gather_with_own(zb)
    logits = scale * za @ zb.T
    goal = torch.arange(len(za))
    loss = (F.cross_entropy(logits, goal) + F.cross_entropy(logits.T, goal)) / 2
    return loss


def pairs(rank, n=256):
    g = torch.Generator().manual_seed(90 + rank)
    z = torch.randn(n, 6, generator=g)
    m = torch.Generator().manual_seed(1)
    return z @ torch.randn(6, 20, generator=m), z @ torch.randn(6, 14, generator=m)


def main():
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(TwoTowers())
    towers = [p for n, p in model.named_parameters() if "logit_scale" not in n]
    opt = torch.optim.AdamW([{"params": towers}, {"params": [model.module.logit_scale], "weight_decay": 0.0}], lr=3e-3)
    a, b = pairs(rank)
    for epoch in range(3):
        for xa, xb in zip(a.split(32), b.split(32)):
            loss = clip_loss(*model(xa, xb))
            opt.zero_grad()
            # every rank has the gradient of the global loss w.r.t. its own rows only: the sum is wanted, DDP gives the mean
            (loss * world).backward()
            model.module.logit_scale.grad /= world
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
