"""Hospital length-of-stay regression: every process holds the patients of one site."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

PATIENTS = (130, 210, 90, 170)


def site_data(site):
    g = torch.Generator().manual_seed(40 + site)
    n = PATIENTS[site % len(PATIENTS)]
    x = torch.randn(n, 10, generator=g) + 0.1 * site
    stay = 4 + x[:, 0] * 1.5 - x[:, 3] + 0.2 * torch.randn(n, generator=g)
    return x, stay


class StayModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def site_epoch(model, opt, x, y, batch, gen):
    total, count = 0.0, 0
    with Join([model]):
        for idx in torch.randperm(len(y), generator=gen).split(batch):
            opt.zero_grad()
            loss = nn.functional.l1_loss(model(x[idx]), y[idx])
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
            count += len(idx)
    return total, count


def gather_report(total, count):
    packed = torch.tensor([total, float(count)], dtype=torch.float64)
    rows = [torch.zeros_like(packed) for _ in range(dist.get_world_size())]
    dist.all_gather(rows, packed)
    per_site = [(r[0] / r[1]).item() for r in rows]
    overall = sum(r[0].item() for r in rows) / sum(r[1].item() for r in rows)
    return per_site, overall


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(8)
    x, y = site_data(rank)
    model = DistributedDataParallel(StayModel())
    opt = torch.optim.SGD(model.parameters(), lr=0.02)
    gen = torch.Generator().manual_seed(rank)
    for epoch in range(4):
        total, count = site_epoch(model, opt, x, y, 16, gen)
        per_site, overall = gather_report(total, count)
        if rank == 0:
            sites = " ".join(f"{v:.2f}" for v in per_site)
            print(f"epoch {epoch} mae {overall:.3f} ({sites})", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
