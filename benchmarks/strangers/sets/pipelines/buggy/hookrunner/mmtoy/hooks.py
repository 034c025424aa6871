from torch.distributed import get_rank

from .registry import HOOKS


class Hook:
    def after_train_iter(self, runner):
        pass

    def every_n_iters(self, runner, n):
        return (runner.iter + 1) % n == 0


@HOOKS.register_module()
class LoggerHook(Hook):
    def __init__(self, interval):
        self.interval = interval

    def after_train_iter(self, runner):
        if self.every_n_iters(runner, self.interval) and get_rank() == 0:
            print(f"iter {runner.iter + 1} loss {runner.outputs['loss'].item():.4f}", flush=True)


@HOOKS.register_module()
class FreezeHook(Hook):
    """Shrink a stage once at the given iteration."""

    def __init__(self, at, stages):
        self.at, self.stage = at, stages

    def after_train_iter(self, runner):
        if runner.iter + 1 == self.at:
            runner.model.scale_stage(self.stage)
