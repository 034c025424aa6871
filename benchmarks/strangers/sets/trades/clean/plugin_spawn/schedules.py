import math

from registry import SCHEDULES, register


@register(SCHEDULES, "warmcos")
class WarmCosine:
    def __init__(self, warmup, total):
        self.warmup, self.total = warmup, total

    def __call__(self, step):
        if step < self.warmup:
            return (step + 1) / self.warmup
        p = (step - self.warmup) / max(1, self.total - self.warmup)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, p)))


def make_schedule(name, **kw):
    return SCHEDULES[name](**kw)


class constant_after:
    def __init__(self, warmup):
        self.warmup = warmup

    def __call__(self, step):
        return min(1.0, (step + 1) / self.warmup)
