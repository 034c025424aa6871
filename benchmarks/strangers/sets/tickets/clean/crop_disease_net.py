"""Leaf disease classifier. Trainer object with callbacks."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Callback:
    def on_fit_start(self, trainer): ...
    def on_epoch_end(self, trainer, loss): ...


class LayerTable(Callback):
    """Writes the output shape of every layer to the log, as Keras does."""

    def on_fit_start(self, trainer):
        if trainer.rank != 0:
            return
        rows, handles = [], []

        def hook(module, args, out):
            rows.append((type(module).__name__, tuple(out.shape)))

        for m in trainer.model.modules():
            if not list(m.children()):
                handles.append(m.register_forward_hook(hook))
        sample = trainer.loader.dataset[0][0].unsqueeze(0).repeat(2, 1, 1, 1)
        trainer.model.module(sample)
        for h in handles:
            h.remove()
        for name, shape in rows:
            print(f"{name:<14}{shape}", flush=True)


class PrintLoss(Callback):
    def on_epoch_end(self, trainer, loss):
        if trainer.rank == 0:
            print(f"epoch {trainer.epoch}: {loss:.4f}", flush=True)


class Trainer:
    def __init__(self, model, loader, epochs, callbacks):
        self.rank = dist.get_rank()
        self.model = DDP(model)
        self.loader, self.epochs, self.callbacks = loader, epochs, callbacks
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.epoch = 0

    def fit(self):
        for c in self.callbacks:
            c.on_fit_start(self)
        for self.epoch in range(self.epochs):
            self.loader.sampler.set_epoch(self.epoch)
            total = torch.zeros(2)
            for x, y in self.loader:
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += torch.tensor([loss.item(), 1.0])
            dist.all_reduce(total)
            for c in self.callbacks:
                c.on_epoch_end(self, float(total[0] / total[1]))


def leaves(n=320):
    g = torch.Generator().manual_seed(4)
    y = torch.randint(0, 4, (n,), generator=g)
    x = torch.randn(n, 3, 12, 12, generator=g) + y.view(-1, 1, 1, 1) * 0.4
    return TensorDataset(x, y)


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = nn.Sequential(conv(3, 12), nn.MaxPool2d(2), conv(12, 24), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 4))
    ds = leaves()
    loader = DataLoader(ds, batch_size=16, sampler=DistributedSampler(ds))
    Trainer(net, loader, epochs=3, callbacks=[LayerTable(), PrintLoss()]).fit()
    dist.barrier()
    dist.destroy_process_group()
