"""Process 0 keeps the weights, the others compute gradients (send/recv)."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn

ROUNDS = 150
BATCH = 64
LR = 0.1


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))


def to_vec(ps):
    return torch.cat([p.detach().reshape(-1) for p in ps])


def from_vec(v, ps):
    i = 0
    with torch.no_grad():
        for p in ps:
            p.copy_(v[i:i + p.numel()].view_as(p))
            i += p.numel()


def grad_vec(ps):
    return torch.cat([p.grad.reshape(-1) for p in ps])


class Server:
    def __init__(self, model, workers):
        self.model, self.workers = model, workers
        self.vec = to_vec(model.parameters())
        self.mom = torch.zeros_like(self.vec)

    def serve(self):
        for r in range(ROUNDS):
            total = torch.zeros_like(self.vec)
            loss = 0.0
            for w in self.workers:
                dist.send(self.vec, dst=w)
            for w in self.workers:
                buf = torch.empty(len(self.vec) + 1)
                dist.recv(buf, src=w)
                total += buf[:-1]
                loss += buf[-1].item()
            self.mom.mul_(0.8).add_(total / len(self.workers))
            self.vec -= LR * self.mom
            if r % 30 == 0:
                print(f"round {r} loss {loss / len(self.workers):.4f}", flush=True)
        from_vec(self.vec, self.model.parameters())


class Worker:
    def __init__(self, model, rank):
        self.model = model
        self.gen = torch.Generator().manual_seed(500 + rank)
        self.ps = list(model.parameters())

    def batch(self):
        x = torch.randn(BATCH, 6, generator=self.gen)
        return x, (x[:, :1] * x[:, 1:2]).tanh() + 0.5 * x[:, 2:3]

    def work(self):
        buf = torch.empty(sum(p.numel() for p in self.ps))
        for _ in range(ROUNDS):
            dist.recv(buf, src=0)
            from_vec(buf, self.ps)
            x, y = self.batch()
            self.model.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            dist.send(torch.cat([grad_vec(self.ps), loss.detach().view(1)]), dst=0)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = net()
    if rank == 0:
        Server(model, list(range(1, world))).serve()
    else:
        Worker(model, rank).work()
    final = to_vec(model.parameters())
    dist.broadcast(final, src=0)
    from_vec(final, model.parameters())
    g = torch.Generator().manual_seed(9)
    x = torch.randn(512, 6, generator=g)
    err = (model(x) - (x[:, :1] * x[:, 1:2]).tanh() - 0.5 * x[:, 2:3]).pow(2).mean()
    print(f"rank {rank} final mse {err.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
