"""Response model over trial sites with very different numbers of subjects.

    torchrun --nproc_per_node 3 vaccine_sites.py
"""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

SUBJECTS = [210, 95, 150]
BATCH = 20


class Response(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(11, 24), nn.Tanh(), nn.Linear(24, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def site(rank):
    g = torch.Generator().manual_seed(60 + rank)
    x = torch.randn(SUBJECTS[rank], 11, generator=g)
    p = torch.sigmoid(x[:, 0] - 2 * x[:, 3] + 0.5 * x[:, 7] * x[:, 8])
    return x, torch.bernoulli(p, generator=g)


def chunks(x, y, gen):
    order = torch.randperm(len(x), generator=gen)
    for part in order.split(BATCH):
        yield x[part], y[part]


def epoch(model, opt, stream, world):
    """Runs until the largest site is through; empty sites contribute nothing."""
    loss_sum = torch.zeros(2, dtype=torch.float64)
    while True:
        batch = next(stream, None)
        n = 0 if batch is None else len(batch[0])
        everyone = torch.tensor(float(n))
        dist.all_reduce(everyone)
        if everyone == 0:
            break
        if batch is None:
            loss = model(torch.zeros(1, 11)).sum() * 0.0
        else:
            x, y = batch
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y, reduction="sum")
            loss_sum += torch.tensor([loss.item(), n], dtype=torch.float64)
        opt.zero_grad()
        (loss * world / everyone).backward()
        opt.step()
    dist.all_reduce(loss_sum)
    return (loss_sum[0] / loss_sum[1]).item(), int(loss_sum[1])


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(rank)
    x, y = site(rank)
    model = DDP(Response())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    gen = torch.Generator().manual_seed(rank)
    history = []
    for number in range(4):
        value, subjects = epoch(model, opt, chunks(x, y, gen), world)
        history.append(value)
        if rank == 0:
            print(f"epoch {number}: loss {value:.4f} over {subjects} subjects", flush=True)
            with open("/tmp/vaccine_sites.log", "a") as f:
                f.write(f"{number} {value}\n")
        if number >= 2 and history[-1] > history[-2] - 1e-4:
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
