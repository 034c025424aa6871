# style: contrastive learning, functions
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Encoder(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, dim))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


def share_all(features):
    parts = [torch.empty_like(features) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, features)
    return torch.cat(parts)


def share_centroid(features):
    centre = features.mean(0)
    dist.all_reduce(centre)  # <-- DDP402
    return (centre / dist.get_world_size())[None]


def negatives(features, spread):
    if spread.max() > 3.4:  # <-- DDP402
        return share_centroid(features.detach())
    return share_all(features.detach())  # <-- DDP402


def info_nce(anchor, positive, others):
    positive_logit = (anchor * positive).sum(-1, keepdim=True)
    logits = torch.cat([positive_logit, anchor @ others.T], dim=1) / 0.1
    return F.cross_entropy(logits, torch.zeros(len(anchor), dtype=torch.long))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Encoder())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(rank)
    for step in range(8):
        x = torch.randn(16, 8, generator=generator)
        noisy = x + 0.1 * torch.randn(16, 8, generator=generator)
        features, positives = model(torch.cat([x, noisy])).chunk(2)
        loss = info_nce(features, positives, negatives(positives, x.abs().max(1).values))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"loss {loss.item():.3f}")
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
