"""Model-agnostic meta-learning on sine waves, tasks are spread over the workers."""
import math
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.func import functional_call
from torch.nn.parallel import DistributedDataParallel

INNER_LR, INNER_STEPS, META_BATCH, ITERS = 0.05, 2, 4, 30


class Waves:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def sample(self, shots=10):
        amp = 0.5 + 4.0 * torch.rand(1, generator=self.g)
        phase = math.pi * torch.rand(1, generator=self.g)
        x = 10 * torch.rand(2 * shots, 1, generator=self.g) - 5
        y = amp * torch.sin(x + phase)
        return (x[:shots], y[:shots]), (x[shots:], y[shots:])


def mse(net, weights, batch):
    return nn.functional.mse_loss(functional_call(net, weights, (batch[0],)), batch[1])


def adapt(net, weights, support):
    for _ in range(INNER_STEPS):
        loss = mse(net, weights, support)
        grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        weights = {k: w - INNER_LR * g for (k, w), g in zip(weights.items(), grads)}
    return weights


def meta_step(model, opt, tasks):
    net = model.module
    weights = dict(net.named_parameters())
    total = 0.0
    for _ in range(META_BATCH):
        support, query = tasks.sample()
        total = total + mse(net, adapt(net, weights, support), query)
    loss = total / META_BATCH
    grads = torch.autograd.grad(loss, list(weights.values()))
    opt.zero_grad()
    for w, g in zip(weights.values(), grads):
        dist.all_reduce(g)
        w.grad = g / dist.get_world_size()
    opt.step()
    return loss.item()


def main():
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    tasks = Waves(seed=1000 + rank)
    for it in range(ITERS):
        loss = meta_step(model, opt, tasks)
        if it % 10 == 0 and rank == 0:
            print(f"it {it} query loss {loss:.4f}", flush=True)
    if rank == 0:
        torch.save(model.module.state_dict(), "maml.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
