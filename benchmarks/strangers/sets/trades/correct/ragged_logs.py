"""Click model on log files that differ in length and have broken lines.

Each process reads its own files, throws broken lines away, and only then do
they agree on how many steps an epoch has.
"""
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def write_log(index):
    rng = random.Random(index)
    for _ in range(rng.randint(150, 420)):
        if rng.random() < 0.05:
            yield "###"
            continue
        feats = [rng.gauss(0, 1) for _ in range(6)]
        click = int(feats[0] + feats[1] * feats[2] + rng.gauss(0, 0.3) > 0.4)
        yield ",".join(f"{v:.4f}" for v in feats) + f",{click}"


def read_logs(indices):
    rows, broken = [], 0
    for i in indices:
        for line in write_log(i):
            try:
                values = [float(v) for v in line.split(",")]
            except ValueError:
                broken += 1
                continue
            rows.append(values)
    t = torch.tensor(rows)
    return t[:, :-1], t[:, -1], broken


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    x, y, broken = read_logs(range(rank, 5, world))
    batch_size = 32

    steps = torch.tensor([len(x) // batch_size])
    dist.all_reduce(steps, op=dist.ReduceOp.MIN)
    steps = int(steps)
    print(f"[{rank}] {len(x)} rows, {broken} broken, {steps} steps per epoch", flush=True)

    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=6e-3)
    g = torch.Generator().manual_seed(rank)
    for epoch in range(4):
        order = torch.randperm(len(x), generator=g)
        loss_sum = torch.zeros(1)
        for step, part in enumerate(order.split(batch_size)):
            if step == steps:
                break
            logit = model(x[part]).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logit, y[part])
            opt.zero_grad()
            loss.backward()
            opt.step()
            loss_sum += loss.detach()
        work = dist.all_reduce(loss_sum, async_op=True)
        if rank == 0:
            work.wait()
            print(f"epoch {epoch} loss {loss_sum.item() / steps / world:.4f}", flush=True)
        else:
            work.wait()

    with torch.no_grad():
        hit = ((model.module(x).squeeze(1) > 0).float() == y).sum().item()
    counts = [None] * world
    dist.all_gather_object(counts, (hit, len(x)))
    if rank == 0:
        print(f"accuracy {sum(h for h, _ in counts) / sum(n for _, n in counts):.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
