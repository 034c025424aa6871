"""One of two backends is chosen by a setting; that of many ranks says how far it is."""

import os
from contextlib import contextmanager, nullcontext

import torch
from torch.distributed import init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP


class Ranks:
    def __init__(self, settings):
        init_process_group(backend=settings.backend)
        self.device = int(os.environ["LOCAL_RANK"])

    def wrapped(self, net):
        return DDP(net, device_ids=[self.device])

    @contextmanager
    def part(self, net, number, of):
        print(f"part {number} of {of}")
        yield


class Alone:
    def __init__(self, settings):
        self.device = 0

    def wrapped(self, net):
        return net

    def part(self, *args, **kwargs):
        return nullcontext()


BACKENDS = {"nccl": Ranks, None: Alone}


def train(net, optimizer, batches, backend, settings):
    for _ in range(settings.steps):
        for number in range(settings.parts):
            words, following = next(batches)
            with backend.part(net=net, number=number, of=settings.parts):
                loss = net(words, following) / settings.parts
            loss.backward()  # <-- DDP304
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def main(settings, net, batches):
    backend = BACKENDS[settings.backend](settings)
    torch.cuda.set_device(backend.device)
    net = backend.wrapped(net.cuda())
    train(net, torch.optim.AdamW(net.parameters()), batches, backend, settings)
