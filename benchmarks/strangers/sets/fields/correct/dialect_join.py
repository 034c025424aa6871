"""Dialect identification; every rank owns the recordings of one region, and regions differ in size."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

DIALECTS = 4


def region(rank):
    g = torch.Generator().manual_seed(rank)
    n = 220 if rank == 0 else 150
    centre = torch.randn(DIALECTS, 12, generator=torch.Generator().manual_seed(77))
    y = torch.randint(0, DIALECTS, (n,), generator=g)
    return centre[y] + 0.7 * torch.randn(n, 12, generator=g), y


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, DIALECTS)))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    x, y = region(rank)
    for epoch in range(5):
        right = 0
        with Join([model]):
            for i in range(0, len(x), 16):
                logits = model(x[i:i + 16])
                loss = nn.functional.cross_entropy(logits, y[i:i + 16])
                opt.zero_grad()
                loss.backward()
                opt.step()
                right += (logits.argmax(1) == y[i:i + 16]).sum().item()
        score = torch.tensor([right, len(x)], dtype=torch.float)
        dist.all_reduce(score)
        if rank == 0:
            print(f"epoch {epoch} accuracy {(score[0] / score[1]).item():.3f} over {int(score[1])} recordings", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
