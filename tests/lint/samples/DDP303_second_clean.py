import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def smoothness(field, points):
    """How fast a field changes, squared."""
    points = points.detach().requires_grad_(True)
    value = field(points)
    (slope,) = torch.autograd.grad(value.sum(), points, create_graph=True)
    return slope.square().sum(1).mean()


def learn(field, optimizer, points, heights):
    optimizer.zero_grad()
    (field(points).squeeze(1) - heights).square().mean().backward()
    optimizer.step()
    # the penalty in a step of its own
    optimizer.zero_grad()
    (0.1 * smoothness(field, points)).backward()
    optimizer.step()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    net = nn.Sequential(nn.Linear(2, 64), nn.Softplus(), nn.Linear(64, 1))
    field = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-3)
    for _ in range(500):
        points = torch.rand(32, 2)
        learn(field, optimizer, points, points.norm(dim=1))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
