"""Semi-supervised node classification over four processes.

The graph is cut in four parts. Two parts carry labels; the other two are trained by
agreement between two edge-dropped passes (GRAND-like)."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

ROLES = {"labelled": (0, 1), "unlabelled": (2, 3)}
MEMBERS = {**ROLES, "metrics": (0, 1, 2, 3)}


class Placement:
    """Who does what, and the communicators that belong to it."""

    def __init__(self, rank):
        self.rank = rank
        self.role = next(name for name, ranks in ROLES.items() if rank in ranks)
        self._groups = {}

    def group(self, name):
        if name not in self._groups:
            self._groups[name] = dist.new_group(list(MEMBERS[name]))
        return self._groups[name]


def make_part(part, nodes=160, classes=4, dim=12):
    g = torch.Generator().manual_seed(50 + part)
    prior = torch.tensor([0.55, 0.25, 0.15, 0.05]) if part % 2 else torch.full((classes,), 1.0 / classes)
    y = torch.multinomial(prior, nodes, replacement=True, generator=g)
    centers = torch.randn(classes, dim, generator=torch.Generator().manual_seed(1))
    x = centers[y] + 1.2 * torch.randn(nodes, dim, generator=g)
    same = (y[:, None] == y[None, :]).float()
    prob = 0.06 * same + 0.01 * (1 - same)
    adj = torch.bernoulli(prob, generator=g).triu(1)
    return x, y, adj + adj.t()


def drop_edges(adj, p, g):
    keep = (torch.rand(adj.shape, generator=g) > p).float().triu(1)
    kept = adj * (keep + keep.t())
    kept = kept + torch.eye(len(adj))
    d = kept.sum(1).rsqrt()
    return d[:, None] * kept * d[None, :]


class GCN(nn.Module):
    def __init__(self, dim=12, hidden=32, classes=4):
        super().__init__()
        self.a, self.b = nn.Linear(dim, hidden), nn.Linear(hidden, classes)

    def forward(self, x, views):
        return [self.b(v @ F.relu(self.a(v @ x))) for v in views]


class Objective:
    """Loss for one part; class weights follow the label counts of every part that has labels."""

    def __init__(self, placement, classes):
        self.placement, self.classes = placement, classes
        self.step = {"labelled": self.supervised, "unlabelled": self.agreement}[placement.role]
        self.weights = None

    def class_weights(self, y):
        if self.weights is None:
            counts = torch.bincount(y, minlength=self.classes).float()
            dist.all_reduce(counts, group=self.placement.group("labelled"))
            self.weights = counts.sum() / (self.classes * counts.clamp(min=1))
        return self.weights

    def supervised(self, outs, y):
        return sum(F.cross_entropy(o, y, weight=self.class_weights(y)) for o in outs) / len(outs)

    def agreement(self, outs, _):
        probs = [o.softmax(1) for o in outs]
        mean = sum(probs) / len(probs)
        sharp = mean.detach().pow(2)
        sharp = sharp / sharp.sum(1, keepdim=True)
        return sum((p - sharp).pow(2).sum(1).mean() for p in probs) / len(probs)


def evaluate(model, placement, x, y, adj):
    with torch.no_grad():
        out = model(x, [drop_edges(adj, 0.0, torch.Generator())])[0]
    hit = torch.tensor([(out.argmax(1) == y).sum().item(), len(y)], dtype=torch.float64)
    dist.all_reduce(hit, group=placement.group("metrics"))
    return (hit[0] / hit[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=60)
    p.add_argument("--drop", type=float, default=0.3)
    p.add_argument("--lr", type=float, default=0.01)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    placement = Placement(rank)
    x, y, adj = make_part(rank)
    net = GCN()
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)
    objective = Objective(placement, classes=4)
    g = torch.Generator().manual_seed(rank)
    for epoch in range(args.epochs):
        views = [drop_edges(adj, args.drop, g) for _ in range(2)]
        loss = objective.step(model(x, views), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch % 20 == 19:
            acc = evaluate(net, placement, x, y, adj)
            if rank == 0:
                print(f"epoch {epoch} accuracy {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
