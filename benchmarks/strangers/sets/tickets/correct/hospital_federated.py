"""Readmission risk in two hospitals. Local epochs, then the weights are averaged by patient counts."""
import argparse
import copy

import torch
import torch.distributed as dist
from torch import nn


def cohort(rank):
    g = torch.Generator().manual_seed(70 + rank)
    n = 500 if rank == 0 else 180
    x = torch.randn(n, 16, generator=g) + 0.3 * rank
    y = (x[:, :4].sum(1) + 0.5 * torch.randn(n, generator=g) > 0).float()
    return x, y


def local_epochs(model, x, y, epochs, lr):
    # the learning rate of a site is its own choice, momentum starts anew in each round
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for _ in range(epochs):
        for part in torch.randperm(len(x)).split(20):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[part]).squeeze(1), y[part])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
    return loss.item()


@torch.no_grad()
def average(model, reference, weight):
    for p, q in zip(model.parameters(), reference.parameters()):
        delta = (p - q) * weight
        dist.all_reduce(delta)
        q.add_(delta)
        p.copy_(q)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rounds", type=int, default=6)
    ap.add_argument("--local-epochs", type=int, default=2)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1000 + rank)
    model = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 1))
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    reference = copy.deepcopy(model)
    x, y = cohort(rank)
    held = len(x) // 5
    patients = torch.tensor(float(len(x) - held))
    everyone = patients.clone()
    dist.all_reduce(everyone)
    for r in range(args.rounds):
        local_epochs(model, x[held:], y[held:], args.local_epochs, lr=0.05 if rank == 0 else 0.02)
        average(model, reference, patients / everyone)
        with torch.no_grad():
            hits = ((model(x[:held]).squeeze(1) > 0) == y[:held].bool()).sum()
        counts = torch.stack([hits, torch.tensor(held)])
        dist.reduce(counts, dst=0)
        if rank == 0:
            print(f"round {r}: accuracy {counts[0] / counts[1]:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
