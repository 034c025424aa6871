import itertools

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Session:
    def __enter__(self):
        dist.init_process_group("gloo")  # <-- DDP102
        return dist.get_rank()

    def __exit__(self, *error):
        print("left")


class Trial:
    def __init__(self, net):
        self.model = DistributedDataParallel(net)

    def run(self, rate):
        if rate < 0:
            raise ValueError(rate)
        return rate


def main(net, rates):
    best = None
    for rate, width in itertools.product(rates, (8, 16)):
        with Session() as rank:
            score = Trial(net).run(rate * width)
            if rank == 0 and (best is None or score < best):
                best = score
    return best
