"""Whoever calls says whether this is the pass that reduces."""

import contextlib

from torch.nn.parallel import DistributedDataParallel


@contextlib.contextmanager
def reducing(module, last):
    if last or not isinstance(module, DistributedDataParallel):
        yield
    else:
        with module.no_sync():
            yield


class Objective:
    def __init__(self, generator):
        self.generator = generator

    def drawn(self, noise, last):
        with reducing(self.generator, last):
            return self.generator(noise)

    def add_up(self, phases, noise, last, gain):
        if "main" in phases:
            self.drawn(noise, last).mean().mul(gain).backward()
        if "penalty" in phases:
            self.drawn(noise[:2], last).square().mean().mul(gain).backward()
