import copy
import json
import os
import time

import torch

from . import comm
from .registry import CALLBACKS


class Callback:
    # whether non-primary processes need an instance too
    everywhere = False
    order = 50

    def before_run(self, runner): ...
    def after_step(self, runner): ...
    def after_epoch(self, runner): ...


@CALLBACKS.register()
class StepTimer(Callback):
    everywhere = True
    order = 10

    def before_run(self, runner):
        self.t = time.perf_counter()

    def after_epoch(self, runner):
        now = time.perf_counter()
        runner.logs["sec"] = now - self.t
        self.t = now


@CALLBACKS.register()
class JsonLog(Callback):
    order = 90

    def __init__(self, path):
        self.path = path

    def before_run(self, runner):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        open(self.path, "w").close()

    def after_epoch(self, runner):
        with open(self.path, "a") as fh:
            fh.write(json.dumps(dict(runner.logs, epoch=runner.epoch)) + "\n")


@CALLBACKS.register()
class Echo(Callback):
    order = 95

    def after_epoch(self, runner):
        print(f"epoch {runner.epoch}", {k: round(v, 4) for k, v in runner.logs.items()}, flush=True)


@CALLBACKS.register()
class WeightAverage(Callback):
    """Exponential moving average of the weights, used for evaluation."""

    everywhere = True
    order = 20

    def __init__(self, decay=0.99):
        self.decay = decay

    def before_run(self, runner):
        runner.averaged = copy.deepcopy(runner.net.module).eval().requires_grad_(False)

    @torch.no_grad()
    def after_step(self, runner):
        src = runner.net.module.state_dict()
        for k, v in runner.averaged.state_dict().items():
            if v.is_floating_point():
                v.lerp_(src[k], 1 - self.decay)
            else:
                v.copy_(src[k])


def build_callbacks(specs):
    built = []
    for spec in specs:
        if comm.is_primary() or CALLBACKS[spec["type"]].everywhere:
            built.append(CALLBACKS.build(spec))
    return sorted(built, key=lambda c: c.order)
