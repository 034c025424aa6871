"""Sigmoid contrastive loss with neighbour exchange of text features."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def neighbour_exchange(to_rank, from_rank, tensor):
    received = torch.zeros_like(tensor)
    dist.recv(received, src=from_rank)
    dist.send(tensor, dst=to_rank)
    return received


class TwoTowers(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.image, self.text = nn.Linear(20, d), nn.Linear(14, d)
        self.scale, self.bias = nn.Parameter(torch.tensor(2.0)), nn.Parameter(torch.tensor(-4.0))

    def forward(self, img, txt):
        return F.normalize(self.image(img), dim=-1), F.normalize(self.text(txt), dim=-1), self.scale, self.bias


class SigLipLoss(nn.Module):
    def __init__(self, rank, world_size):
        super().__init__()
        self.rank, self.world_size = rank, world_size

    def pair(self, i, t, scale, bias, negative_only=False):
        labels = -torch.ones(len(i), len(t))
        if not negative_only:
            labels += 2 * torch.eye(len(i))
        return -F.logsigmoid(labels * (scale.exp() * i @ t.T + bias)).sum() / len(i)

    def forward(self, img, txt, scale, bias):
        loss = self.pair(img, txt, scale, bias)
        right, left = (self.rank + 1) % self.world_size, (self.rank - 1) % self.world_size
        travelling = txt.detach()
        for _ in range(self.world_size - 1):
            travelling = neighbour_exchange(right, left, travelling)
            loss = loss + self.pair(img, travelling, scale, bias, negative_only=True)
        return loss


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model, criterion = DDP(TwoTowers()), SigLipLoss(rank, world)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    g = torch.Generator().manual_seed(rank)
    for step in range(15):
        z = torch.randn(8, 6, generator=g)
        loss = criterion(*model(z.repeat(1, 4)[:, :20], z.repeat(1, 3)[:, :14]))
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"[{rank}] loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
