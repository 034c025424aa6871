"""Attentional keypoint matching (rotated point sets), config as nested dict."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

config = {
    "model": {"dim": 32, "heads": 4},
    "train": {"iters": 40, "lr": 3e-3, "batch": 4, "points": 20},
}


class Matcher(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(10, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.cross = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.proj = nn.Linear(dim, dim)

    def forward(self, data):
        a, b = self.embed(data["desc0"]), self.embed(data["desc1"])
        a2 = self.proj(a + self.cross(a, b, b, need_weights=False)[0])
        b2 = self.proj(b + self.cross(b, a, a, need_weights=False)[0])
        return a2 @ b2.transpose(1, 2) / a.shape[-1] ** 0.5

    def forward_train(self, data):
        scores = self(data).log_softmax(-1)
        return nn.functional.nll_loss(scores.flatten(0, 1), data["match"].flatten())


def synthetic_pair(batch, points, g):
    desc = torch.randn(batch, points, 10, generator=g)
    order = torch.stack([torch.randperm(points, generator=g) for _ in range(batch)])
    shuffled = torch.gather(desc, 1, order.unsqueeze(-1).expand_as(desc))
    return {
        "desc0": desc,
        "desc1": shuffled + 0.1 * torch.randn(desc.shape, generator=g),
        "match": order.argsort(1),
    }


def train(config, rank):
    torch.manual_seed(0)
    matcher = Matcher(**config["model"])
    if dist.get_world_size() > 1:
        matcher = DistributedDataParallel(matcher)
    opt = torch.optim.Adam(matcher.parameters(), lr=config["train"]["lr"])
    g = torch.Generator().manual_seed(rank)
    for it in range(config["train"]["iters"]):
        data = synthetic_pair(config["train"]["batch"], config["train"]["points"], g)
        loss = matcher.forward_train(data)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and it % 10 == 0:
            print(f"it {it}: {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(config, dist.get_rank())
    dist.destroy_process_group()
