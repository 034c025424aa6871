"""First-order meta-learning: the inner loop uses autograd.grad on copies, the outer gradient is averaged by hand."""
import copy
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn

WORLD = 2


class Sines:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def task(self):
        amp, phase = torch.rand(2, generator=self.g).tolist()

        def draw(n):
            x = 8 * torch.rand(n, 1, generator=self.g) - 4
            return x, (0.5 + amp) * torch.sin(x + 3 * phase)

        return draw


class Learner:
    def __init__(self, inner_lr=0.02, inner_steps=3):
        self.net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
        self.inner_lr, self.inner_steps = inner_lr, inner_steps

    def equalise(self):
        for p in self.net.parameters():
            dist.broadcast(p.data, src=0)

    def adapt(self, draw):
        fast = copy.deepcopy(self.net)
        x, y = draw(10)
        for _ in range(self.inner_steps):
            loss = (fast(x) - y).pow(2).mean()
            grads = torch.autograd.grad(loss, list(fast.parameters()))
            with torch.no_grad():
                for p, g in zip(fast.parameters(), grads):
                    p -= self.inner_lr * g
        return fast

    def meta_grad(self, tasks):
        total = 0.0
        sums = [torch.zeros_like(p) for p in self.net.parameters()]
        for draw in tasks:
            fast = self.adapt(draw)
            x, y = draw(10)
            loss = (fast(x) - y).pow(2).mean()
            for s, g in zip(sums, torch.autograd.grad(loss, list(fast.parameters()))):
                s += g
            total += loss.item()
        return sums, total

    def average(self, sums, count):
        flat = nn.utils.parameters_to_vector(sums)
        flat = torch.cat([flat, torch.tensor([float(count)])])
        dist.all_reduce(flat)
        at = 0
        for p in self.net.parameters():
            p.grad = (flat[at:at + p.numel()] / flat[-1]).view_as(p).clone()
            at += p.numel()


def main(rank, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(rank)
    learner, source = Learner(), Sines(100 + rank)
    learner.equalise()
    opt = torch.optim.Adam(learner.net.parameters(), lr=3e-3)
    tasks_here = 3 + rank
    for it in range(1, 31):
        sums, total = learner.meta_grad([source.task() for _ in range(tasks_here)])
        learner.average(sums, tasks_here)
        opt.step()
        if it % 10 == 0:
            shown = torch.tensor([total, float(tasks_here)])
            dist.reduce(shown, dst=0)
            if rank == 0:
                print(f"iteration {it} post-adaptation mse {(shown[0] / shown[1]).item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("localhost", 0))
        free = s.getsockname()[1]
    mp.spawn(main, args=(free,), nprocs=WORLD)
