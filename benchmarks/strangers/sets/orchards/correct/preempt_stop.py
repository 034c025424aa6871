"""Handles pre-emption: any process may get the signal, all of them stop at the same step."""
import os
import signal
import tempfile
import threading
import time

import torch
import torch.distributed as dist
import torch.nn as nn


class Preemption:
    def __init__(self, every=5):
        self.every = every
        self.seen = False
        signal.signal(signal.SIGUSR1, self._on_signal)

    def _on_signal(self, *_):
        self.seen = True

    def agreed(self, step):
        if step % self.every:
            return False
        flag = torch.tensor([1 if self.seen else 0])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())


class SpiralNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, x):
        return self.f(x)


def spirals(gen, n=128):
    y = torch.randint(0, 2, (n,), generator=gen)
    t = torch.rand(n, generator=gen) * 6 + 0.5
    a = t + y * 3.1416
    x = torch.stack([t * a.cos(), t * a.sin()], 1) / 6
    return x + 0.02 * torch.randn(n, 2, generator=gen), y


def scheduler_signal(rank):
    """Plays the cluster scheduler: warns only one of the processes."""
    if rank == 1:
        t = threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        t.daemon = True
        t.start()


def checkpoint(net, opt, step):
    """Returns a shared path, known to all."""
    box = [None]
    if dist.get_rank() == 0:
        fd, path = tempfile.mkstemp(suffix=".pt")
        os.close(fd)
        torch.save({"net": net.module.state_dict(), "opt": opt.state_dict(), "step": step}, path)
        box = [path]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(4)
    net = nn.parallel.DistributedDataParallel(SpiralNet())
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    gen = torch.Generator().manual_seed(60 + rank)
    pre = Preemption()
    scheduler_signal(rank)
    step, path = 0, None
    deadline = 2000
    while step < deadline:
        step += 1
        x, y = spirals(gen)
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if pre.agreed(step):
            path = checkpoint(net, opt, step)
            break
    print(f"rank {rank} stopped after step {step}, loss {loss.item():.3f}", flush=True)
    if path is not None:
        blob = torch.load(path, weights_only=True)
        assert blob["step"] == step
        net.module.load_state_dict(blob["net"])
        opt.load_state_dict(blob["opt"])
        dist.barrier()
        if rank == 0:
            os.remove(path)
    for _ in range(20):
        x, y = spirals(gen)
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    if rank == 0:
        print(f"continued, loss {loss.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
