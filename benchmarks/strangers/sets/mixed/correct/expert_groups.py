"""Four processes, two groups: experts are averaged inside a group, the trunk over everybody."""
import torch
import torch.distributed as dist
import torch.nn as nn


def build_groups(world, size):
    mine = None
    for start in range(0, world, size):
        members = list(range(start, start + size))
        group = dist.new_group(members)
        if dist.get_rank() in members:
            mine = group, members
    return mine


class Mixture(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.trunk = nn.Linear(6, dim)
        self.expert = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, x):
        return self.expert(torch.relu(self.trunk(x)))


def average_grads(params, group, count):
    for p in params:
        dist.all_reduce(p.grad, group=group)
        p.grad /= count


def work():
    rank, world = dist.get_rank(), dist.get_world_size()
    group, members = build_groups(world, 2)
    torch.manual_seed(100)
    net = Mixture(12)
    torch.manual_seed(200 + members[0])
    for layer in net.expert:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    g = torch.Generator().manual_seed(3000 + rank)
    for step in range(30):
        x = torch.randn(8, 6, generator=g)
        loss = nn.functional.mse_loss(net(x), x.sum(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        average_grads(net.trunk.parameters(), None, world)
        average_grads(net.expert.parameters(), group, len(members))
        opt.step()
    final = loss.detach().clone()
    dist.all_reduce(final, group=group)
    if rank == members[0]:
        print(f"group {members}: loss {final.item() / len(members):.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    work()
    dist.destroy_process_group()
