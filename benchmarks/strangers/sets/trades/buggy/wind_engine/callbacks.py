import functools
import json
import os
import time


def rank_zero_only(fn):
    @functools.wraps(fn)
    def wrapped(self, engine, *args, **kwargs):
        if engine.is_global_zero:
            return fn(self, engine, *args, **kwargs)

    return wrapped


class Callback:
    def on_fit_start(self, engine):
        pass

    def on_batch_end(self, engine, loss):
        pass

    def on_fit_end(self, engine):
        pass


class History(Callback):
    """Running loss, written to <root>/history.json at the end."""

    def on_fit_start(self, engine):
        self.rows = []

    @rank_zero_only
    def on_batch_end(self, engine, loss):
        if engine.step % 50 == 0:
            self.rows.append({"step": engine.step, "loss": float(loss)})

    @rank_zero_only
    def on_fit_end(self, engine):
        with open(os.path.join(engine.root, "history.json"), "w") as f:
            json.dump(self.rows, f)
        print(f"{len(self.rows)} rows of history, stopped at step {engine.step}", flush=True)


class JobBudget(Callback):
    """Asks the engine to wind up once the allotted seconds are used.

    The queue on the cluster kills us without a warning, so this leaves some
    room for the final export.
    """

    def __init__(self, seconds):
        self.seconds = seconds

    def on_fit_start(self, engine):
        self.t0 = time.monotonic()

    @rank_zero_only
    def on_batch_end(self, engine, loss):
        if time.monotonic() - self.t0 > self.seconds:
            engine.should_stop = True
