import sys
import time


class Console:
    """Progress lines on the main process, a no-op elsewhere."""

    def __init__(self, enabled, every):
        self.enabled = enabled
        self.every = every
        self.born = time.time()

    def tick(self, step, loss, score):
        if step % self.every:
            return
        self._write(f"step {step:4d} loss {loss:.3f}", score.miou)

    def epoch(self, n, miou, acc):
        self._write(f"== epoch {n}: mIoU {miou:.3f} acc {acc:.3f}")

    def _write(self, head, score=None):
        if not self.enabled:
            return
        tail = "" if score is None else f" (running mIoU {score:.3f})"
        sys.stdout.write(f"[{time.time() - self.born:5.1f}s] {head}{tail}\n")
        sys.stdout.flush()
