"""Plankton abundance from net samples; stations with broken sensors give useless batches."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Station:
    """Each process owns its stations, and some have more samples than others."""

    def __init__(self, rank):
        self.g = torch.Generator().manual_seed(200 + rank)
        self.casts = 18 + 7 * rank

    def __iter__(self):
        for _ in range(self.casts):
            x = torch.randn(16, 10, generator=self.g)
            rate = torch.exp(0.3 * x[:, :3].sum(1))
            y = torch.poisson(rate, generator=self.g)
            if torch.rand((), generator=self.g) < 0.15:
                x[0, 0] = float("nan")
            yield x, y


def poisson_loss(log_rate, y):
    return (log_rate.exp() - y * log_rate).mean()


def any_left(batch):
    flag = torch.tensor(int(batch is not None))
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag)


def run_epoch(net, opt, station):
    stream, used = iter(station), torch.zeros(2)
    while True:
        batch = next(stream, None)
        if not any_left(batch):
            break
        usable = batch is not None and bool(torch.isfinite(batch[0]).all())
        if usable:
            x, y = batch
            loss = poisson_loss(net(x).squeeze(1), y)
            used += torch.tensor([loss.item(), 1.0])
        else:
            loss = net(torch.zeros(1, 10)).sum() * 0.0
        share = torch.tensor(float(usable))
        dist.all_reduce(share)
        opt.zero_grad()
        loss.backward()
        if share > 0:
            for p in net.parameters():
                p.grad.mul_(dist.get_world_size() / share)
            opt.step()
    dist.all_reduce(used)
    return float(used[0] / used[1])


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    net = DDP(nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(4):
        mean = run_epoch(net, opt, Station(rank))
        if rank == 0:
            print(f"epoch {epoch} loss {mean:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
