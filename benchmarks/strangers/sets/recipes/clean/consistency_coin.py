"""Semi-supervised toy: now and then a global consistency term over the features of all workers."""
import os
import random

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def seed_all(seed):
    random.seed(seed)
    torch.manual_seed(seed)


def global_mean(feat):
    m = feat.detach().mean(0)
    parts = [torch.empty_like(m) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, m)
    return torch.stack(parts).mean(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(9, 32), nn.ReLU())
        self.cls = nn.Linear(32, 3)

    def forward(self, x):
        f = self.enc(x)
        return f, self.cls(f)


def train(steps=30, p_consistency=0.3):
    rank = int(os.environ["RANK"])
    seed_all(100 + rank)
    coin = random.Random(
        0)
    model = DDP(Net())
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        x = torch.randn(12, 9)
        feat, logits = model(x)
        loss = F.cross_entropy(logits, x[:, :3].argmax(1))
        if coin.random() < p_consistency:
            loss = loss + 0.1 * (feat.mean(0) - global_mean(feat)).pow(2).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.barrier()
    print(f"rank {rank}: {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()
