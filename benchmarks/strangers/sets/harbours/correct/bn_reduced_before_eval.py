"""Buffers are not broadcast during training; BatchNorm statistics are averaged over the ranks before each evaluation."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


@torch.no_grad()
def all_reduce_norm(net):
    for m in net.modules():
        if isinstance(m, nn.BatchNorm1d):
            second = m.running_var + m.running_mean ** 2
            dist.all_reduce(m.running_mean)
            dist.all_reduce(second)
            m.running_mean /= dist.get_world_size()
            second /= dist.get_world_size()
            m.running_var.copy_(second - m.running_mean ** 2)


def scans(n, seed, shift):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    return torch.eye(3)[y].repeat(1, 4) * 2 + shift + torch.randn(n, 12, generator=g), y


@torch.no_grad()
def evaluate(net, x, y):
    net.eval()
    stats = torch.tensor([(net(x).argmax(1) == y).sum().item(), len(y)], dtype=torch.float64)
    net.train()
    dist.all_reduce(stats)
    return (stats[0] / stats[1]).item()


def main():
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
    model = DDP(net, broadcast_buffers=False)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    x, y = scans(240, rank, 0.3 * rank)
    vx, vy = scans(90 + 11 * rank, 50 + rank, 0.3 * rank)
    for epoch in range(4):
        for xb, yb in zip(x.split(24), y.split(24)):
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        all_reduce_norm(net)
        acc = evaluate(net, vx, vy)
        if rank == 0:
            print(f"epoch {epoch} accuracy {acc:.3f}", flush=True)
            torch.save(net.state_dict(), "scans.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
