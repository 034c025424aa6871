import torch.distributed as dist

LATER = True


def start(x):
    return dist.all_reduce(x, async_op=LATER)  # <-- DDP414


def mean(x):
    start(x)
    return x / dist.get_world_size()


class Ring:
    def step(self, x, to):
        sent = dist.isend(x, to)  # <-- DDP414
        return x
