"""Contrastive training over the batch of all processes; own rows carry the gradient, hence the factor."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def gather_rows(z):
    rows = [torch.zeros_like(z) for _ in range(dist.get_world_size())]
    dist.all_gather(rows, z.detach())
    rows[dist.get_rank()] = z
    return torch.cat(rows)


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.text, self.image = nn.Linear(12, 8), nn.Linear(20, 8)

    def forward(self, t, i):
        return F.normalize(self.text(t), dim=1), F.normalize(self.image(i), dim=1)


def clip_loss(a, b, scale=8.0):
    a, b = gather_rows(a), gather_rows(b)
    logits = scale * a @ b.t()
    target = torch.arange(len(a))
    loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2
    return loss, loss * dist.get_world_size()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    mix = torch.randn(12, 20)
    net = DDP(Towers())
    opt = torch.optim.SGD(net.parameters(), lr=0.2)
    g = torch.Generator().manual_seed(dist.get_rank())
    for step in range(40):
        t = torch.randn(16, 12, generator=g)
        shown, loss = clip_loss(*net(t, t @ mix))
        opt.zero_grad()
        loss.backward()
        opt.step()
    if dist.get_rank() == 0:
        print(f"loss {shown.item():.4f}")
    dist.destroy_process_group()
