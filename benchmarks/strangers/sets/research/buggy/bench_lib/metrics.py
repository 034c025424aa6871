"""Small stateful metrics in the usual update / compute / reset fashion."""
import torch
import torch.distributed as dist


def _ready():
    return dist.is_available() and dist.is_initialized()


class Metric:
    def __init__(self, sync_on_compute=True):
        self.sync_on_compute = sync_on_compute
        self._state = {}
        self._defaults = {}

    def add_state(self, name, default):
        self._defaults[name] = default
        self._state[name] = default.clone()

    def reset(self):
        self._state = {k: v.clone() for k, v in self._defaults.items()}

    def _synced(self):
        if not (self.sync_on_compute and _ready()):
            return self._state
        out = {}
        for name, value in self._state.items():
            parts = [torch.zeros_like(value) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, value)
            out[name] = torch.stack(parts).sum(0)
        return out

    def compute(self):
        return self.finish(**self._synced())


class MulticlassAccuracy(Metric):
    def __init__(self, **kw):
        super().__init__(**kw)
        self.add_state("correct", torch.zeros(1))
        self.add_state("total", torch.zeros(1))

    def update(self, logits, target):
        self._state["correct"] += (logits.argmax(-1) == target).sum()
        self._state["total"] += target.numel()

    @staticmethod
    def finish(correct, total):
        return (correct / total.clamp(min=1)).item()


class MacroF1(Metric):
    def __init__(self, num_classes, **kw):
        super().__init__(**kw)
        self.num_classes = num_classes
        self.add_state("confusion", torch.zeros(num_classes, num_classes))

    def update(self, logits, target):
        flat = target * self.num_classes + logits.argmax(-1)
        self._state["confusion"] += torch.bincount(flat, minlength=self.num_classes ** 2).view(self.num_classes, -1)

    @staticmethod
    def finish(confusion):
        tp = confusion.diag()
        return (2 * tp / (confusion.sum(0) + confusion.sum(1)).clamp(min=1)).mean().item()


class MetricCollection(dict):
    def update(self, logits, target):
        for m in self.values():
            m.update(logits, target)

    def compute(self):
        return {name: m.compute() for name, m in self.items()}

    def reset(self):
        for m in self.values():
            m.reset()
