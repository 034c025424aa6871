"""Pipeline of two stages with micro batches (fill, then drain)."""
import torch
import torch.distributed as dist
from torch import nn

MICRO, BS, WIDTH = 4, 16, 24


class Stage:
    def __init__(self, rank):
        torch.manual_seed(rank)
        self.rank = rank
        if rank == 0:
            self.net = nn.Sequential(nn.Linear(10, WIDTH), nn.Tanh())
        else:
            self.net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def first(self, xs):
        outs, sent = [], []
        for x in xs:
            h = self.net(x)
            outs.append(h)
            sent.append(dist.isend(h.detach().contiguous(), dst=1))
        for h in outs:
            g = torch.empty_like(h)
            dist.recv(g, src=1)
            h.backward(g)
        for w in sent:
            w.wait()

    def second(self, ys):
        total, sent = 0.0, []
        for y in ys:
            h = torch.empty(BS, WIDTH)
            dist.recv(h, src=0)
            h.requires_grad_()
            loss = (self.net(h) - y).square().mean() / MICRO
            loss.backward()
            sent.append((dist.isend(h.grad, dst=0), h))
            total += loss.item()
        for w, _ in sent:
            w.wait()
        return total


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    stage = Stage(rank)
    gen = torch.Generator().manual_seed(100)
    for step in range(30):
        x = torch.randn(MICRO, BS, 10, generator=gen)
        y = x[..., :2].sum(-1, keepdim=True).sin()
        stage.opt.zero_grad()
        if rank == 0:
            stage.first(x)
        else:
            value = stage.second(y)
            if step % 10 == 0:
                print("step", step, "loss %.4f" % value, flush=True)
        stage.opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
