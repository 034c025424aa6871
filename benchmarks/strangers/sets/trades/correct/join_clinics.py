"""Every clinic (process) has its own number of patients; nobody is dropped."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

PATIENTS = {0: 230, 1: 140, 2: 75}


def clinic(rank):
    n = PATIENTS[rank]
    g = torch.Generator().manual_seed(rank)
    x = torch.randn(n, 9, generator=g) + 0.1 * rank
    risk = x[:, 0] - 0.5 * x[:, 1] * x[:, 2]
    return x, (risk > 0).float()


def epoch_batches(x, y, batch_size, g):
    order = torch.randperm(len(x), generator=g)
    for part in order.split(batch_size):
        yield x[part], y[part]


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(77)
    x, y = clinic(rank)
    model = DDP(nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    g = torch.Generator().manual_seed(200 + rank)

    for epoch in range(5):
        seen, loss_sum = 0, 0.0
        with Join([model]):
            for xb, yb in epoch_batches(x, y, 16, g):
                loss = nn.functional.binary_cross_entropy_with_logits(model(xb).squeeze(1), yb)
                opt.zero_grad()
                loss.backward()
                opt.step()
                seen += len(xb)
                loss_sum += loss.item() * len(xb)
        # clinics that ran out early come here through the join and meet the rest
        t = torch.tensor([loss_sum, float(seen)])
        dist.all_reduce(t)
        if rank == 0:
            print(f"epoch {epoch}: {int(t[1])} patients, loss {(t[0] / t[1]).item():.4f}", flush=True)

    with torch.no_grad():
        hits = ((model.module(x).squeeze(1) > 0).float() == y).sum().item()
    board = [None] * dist.get_world_size() if rank == 0 else None
    dist.gather_object((rank, hits, len(x)), board, dst=0)
    if rank == 0:
        for r, h, n in board:
            print(f"clinic {r}: {h}/{n} right", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
