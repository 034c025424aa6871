from .train_loop import HookBase


class LRScheduler(HookBase):
    def after_step(self):
        self.trainer.scheduler.step()


class EvalHook(HookBase):
    """Run a function every so many iterations and keep the best score."""

    def __init__(self, eval_period, eval_function):
        self._period, self._func = eval_period, eval_function

    def _do_eval(self):
        results = self._func()
        self.trainer.best = max(self.trainer.best, results["mIoU"])
        print(f"iter {self.trainer.iter + 1} loss {self.trainer.last_loss:.4f} mIoU {results['mIoU']:.2f}", flush=True)

    def after_step(self):
        if self._period > 0 and (self.trainer.iter + 1) % self._period == 0:
            self._do_eval()
