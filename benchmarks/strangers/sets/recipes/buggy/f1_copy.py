"""Binary F1 of a fraud model, counters summed over workers."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class F1:
    def __init__(self):
        self.tp = self.fp = self.fn = 0

    def update(self, pred, target):
        self.tp += int((pred & target).sum())
        self.fp += int((pred & ~target).sum())
        self.fn += int((~pred & target).sum())

    def synchronize(self):
        counts = torch.tensor([self.tp, self.fp, self.fn])
        dist.all_reduce(counts.double())
        self.tp, self.fp, self.fn = counts.tolist()

    def compute(self):
        return 2 * self.tp / max(2 * self.tp + self.fp + self.fn, 1)


def transactions(seed, n):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    return x, (x[:, 0] * x[:, 1] + 0.5 * x[:, 2] > 0.8)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    x, y = transactions(rank, 200)
    for _ in range(60):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y.float())
        opt.zero_grad()
        loss.backward()
        opt.step()
    f1 = F1()
    xv, yv = transactions(50 + rank, 120)
    with torch.no_grad():
        f1.update(model.module(xv).squeeze(1) > 0, yv)
    f1.synchronize()
    print(f"rank {rank}: F1 {f1.compute():.4f} from {int(f1.tp)} hits", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
