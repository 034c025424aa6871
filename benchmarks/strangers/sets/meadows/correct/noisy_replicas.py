"""Evolution strategies on a reacher arm: every process perturbs with its own noise."""
import math
import os

import torch
import torch.distributed as dist

TARGETS = 16


class Arm:
    """Planar arm with three links."""

    links = torch.tensor([1.0, 0.8, 0.5])

    def tip(self, joints):
        a = joints.cumsum(-1)
        return torch.stack([(self.links * a.cos()).sum(-1), (self.links * a.sin()).sum(-1)], -1)


class Policy:
    sizes = [(2, 16), (16, 3)]

    def __init__(self):
        self.count = sum(a * b + b for a, b in self.sizes)

    def __call__(self, theta, x):
        at = 0
        for k, (a, b) in enumerate(self.sizes):
            w = theta[at : at + a * b].view(a, b)
            at += a * b
            x = x @ w + theta[at : at + b]
            at += b
            if k == 0:
                x = x.tanh()
        return x


def reward(theta, policy, arm, targets):
    reach = arm.tip(policy(theta, targets))
    return -(reach - targets).norm(dim=-1).mean()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    shared = torch.Generator().manual_seed(0)
    private = torch.Generator().manual_seed(1000 + rank)
    arm, policy = Arm(), Policy()
    theta = 0.3 * torch.randn(policy.count, generator=shared)
    sigma, lr, pairs = 0.1, 0.15, 8
    for it in range(40):
        angle = torch.rand(TARGETS, generator=shared) * 2 * math.pi
        radius = 0.8 + torch.rand(TARGETS, generator=shared)
        targets = torch.stack([radius * angle.cos(), radius * angle.sin()], -1)
        grad = torch.zeros_like(theta)
        for _ in range(pairs):
            eps = torch.randn(policy.count, generator=private)
            up = reward(theta + sigma * eps, policy, arm, targets)
            down = reward(theta - sigma * eps, policy, arm, targets)
            grad += (up - down) / (2 * sigma) * eps
        dist.all_reduce(grad)
        theta += lr * grad / (pairs * world)
        if rank == 0 and it % 10 == 0:
            print(f"iteration {it} reward {reward(theta, policy, arm, targets):.3f}", flush=True)
    check = theta.clone()
    dist.broadcast(check, src=0)
    if not torch.allclose(check, theta):
        raise RuntimeError("parameters differ")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
