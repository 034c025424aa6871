"""Mini trainer with callbacks; the running accuracy is shown next to the loss."""
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Accuracy:
    """Counts per process; the value is over all processes."""

    def __init__(self, group):
        self.state, self.group = torch.zeros(2), group

    def update(self, logits, y):
        self.state += torch.tensor([(logits.argmax(-1) == y).sum().item(), y.numel()])

    def compute(self):
        total = self.state.clone()
        dist.all_reduce(total, group=self.group)
        return (total[0] / total[1]).item()


class Callback:
    def on_epoch_end(self, trainer): ...


class ProgressBar(Callback):
    def on_epoch_end(self, trainer):
        items = {k: v if isinstance(v, float) else v.compute() for k, v in trainer.logged.items()}
        sys.stdout.write(f"epoch {trainer.epoch}: " + " ".join(f"{k}={v:.3f}" for k, v in items.items()) + "\n")
        sys.stdout.flush()


class BestMetric(Callback):
    best = 0.0

    def on_epoch_end(self, trainer):
        self.best = max(self.best, trainer.logged["acc"].compute())


class Trainer:
    def __init__(self, callbacks):
        self.rank = dist.get_rank()
        self.callbacks, self.logged = callbacks, {}
        self.metric_group = dist.new_group()

    def fit(self, model, epochs=3, steps=8):
        model = DistributedDataParallel(model)
        opt = torch.optim.Adam(model.parameters(), lr=5e-3)
        g = torch.Generator().manual_seed(self.rank)
        for self.epoch in range(epochs):
            acc = Accuracy(self.metric_group)
            for _ in range(steps):
                x = torch.randn(32, 12, generator=g)
                y = (x[:, :4].sum(1) > x[:, 4:8].sum(1)).long()
                out = model(x)
                loss = nn.functional.cross_entropy(out, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                acc.update(out.detach(), y)
            self.logged = {"loss": loss.item(), "acc": acc}
            for cb in self.callbacks:
                cb.on_epoch_end(self)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    best = BestMetric()
    cbs = [best]
    if dist.get_rank() == 0:
        cbs.insert(0, ProgressBar())
    Trainer(cbs).fit(nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2)))
    if dist.get_rank() == 0:
        print(f"best accuracy {best.best:.3f}", flush=True)
    dist.destroy_process_group()
