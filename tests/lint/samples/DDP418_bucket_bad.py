import math

import torch
from torch import distributed, nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Courier:
    """Carries the gradients of a seismometer's picker; a burst that overflowed stays at home."""

    def __init__(self, ceiling):
        self.ceiling = ceiling
        self.lost = 0

    def usable(self, flat):
        size = flat.norm().item()
        return math.isfinite(size) and size < self.ceiling

    def carry(self, team, bucket):
        flat = bucket.buffer()
        if self.usable(flat):  # <-- DDP418
            return default_hooks.fp16_compress_hook(team, bucket)
        self.lost += 1
        answer = torch.futures.Future()
        answer.set_result(flat.zero_())
        return answer


def fit(traces, rounds):
    distributed.init_process_group("gloo")
    picker = DistributedDataParallel(nn.Linear(300, 2))
    courier = Courier(1e4)
    picker.register_comm_hook(state=distributed.group.WORLD, hook=courier.carry)
    rule = torch.optim.SGD(picker.parameters(), lr=0.01)
    order = DistributedSampler(traces)
    for number in range(rounds):
        order.set_epoch(number)
        for trace, arrival in DataLoader(traces, batch_size=8, sampler=order):
            rule.zero_grad()
            nn.functional.cross_entropy(picker(trace), arrival).backward()
            rule.step()
    distributed.destroy_process_group()
