import torch.distributed as dist

LATER = True


def start(x):
    return dist.all_reduce(x, async_op=LATER)


def mean(x):
    start(x).wait()
    return x / dist.get_world_size()


def at_once(x):
    dist.all_reduce(x, async_op=not LATER)
    return x


class Ring:
    def __init__(self):
        self.open = []

    def step(self, x, to):
        self.open.append(dist.isend(x, to))

    def finish(self):
        for each in self.open:
            each.wait()
