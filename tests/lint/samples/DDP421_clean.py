import torch
import torch.distributed as dist
from torch import nn


@torch.no_grad()
def error(model, loader):
    sums = torch.zeros(2)
    for x, y in loader:
        part = torch.zeros(2)
        part += torch.stack([(model(x) - y).abs().sum(), torch.tensor(float(len(y)))])
        dist.all_reduce(part)
        sums += part
    return sums[0] / sums[1]


class Meter:
    def __init__(self):
        self.total = torch.zeros(())
        self.worst = torch.zeros(())

    def follow(self, losses):
        for step, loss in enumerate(losses):
            self.total += loss.detach()
            self.worst += loss.detach()
            dist.all_reduce(self.worst, op=dist.ReduceOp.MAX)
            if step % 100 == 99:
                dist.all_reduce(self.total)
                print(self.total / 100)
                self.total = torch.zeros(())

    def restart(self, losses):
        for loss in losses:
            self.total += loss.detach()
            dist.all_reduce(self.total)
            print(self.total)
            self.total.zero_()


def mean_of_all(losses):
    """The mean of totals that are equal is that total."""
    mean, total = torch.zeros(2), torch.zeros(2)
    for loss in losses:
        mean += loss
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        total += loss
        dist.all_reduce(total)
        total /= dist.get_world_size()
    return mean, total


def begin_anew(losses):
    a, b, c, d = torch.zeros(1), torch.zeros(1), torch.zeros(1), torch.zeros(1)
    e, f, g, h = torch.zeros(1), torch.zeros(1), torch.zeros(1), torch.zeros(1)
    i, j, k, m = torch.zeros(1), torch.zeros(1), torch.zeros(1), torch.zeros(1)
    n, o = torch.zeros(1), torch.zeros(2)
    for loss in losses:
        a += loss
        dist.all_reduce(a)
        print(a)
        a[:] = 0
        b += loss
        dist.all_reduce(b)
        print(b)
        b[...] = 0
        c += loss
        dist.all_reduce(c)
        print(c)
        c[0] = 0
        d += loss
        dist.all_reduce(d)
        print(d)
        d *= 0
        e += loss
        dist.all_reduce(e)
        print(e)
        e.mul_(0)
        f += loss
        dist.all_reduce(f)
        print(f)
        f -= f
        g += loss
        dist.all_reduce(g)
        print(g)
        g.sub_(g)
        h += loss
        dist.all_reduce(h)
        print(h)
        nn.init.zeros_(h)
        i += loss
        dist.all_reduce(i)
        print(i)
        i.detach().zero_()
        j += loss
        dist.all_reduce(j)
        print(j)
        j.data = torch.zeros(1)
        k += loss
        dist.all_reduce(k)
        print(k)
        k.set_(torch.zeros(1))
        m += loss
        dist.all_reduce(m)
        print(m)
        torch.mul(m, 0, out=m)
        n += loss
        dist.all_reduce(n)
        print(n)
        n.narrow(0, 0, 1).zero_()
        o += loss
        dist.all_reduce(o)
        print(o)
        left, right = o.chunk(2)
        left.zero_()
        right.zero_()


def once(losses):
    rounds = torch.zeros(1)
    while True:
        rounds += 1
        dist.all_reduce(rounds)
        break
    for loss in losses:
        rounds += loss
        dist.all_reduce(rounds)
        return rounds


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Meter().follow([torch.ones(()), torch.zeros(())])
    mean_of_all([torch.ones(2)])
    begin_anew([torch.ones(1)])
    once([torch.ones(1)])
