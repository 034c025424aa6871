"""Speaker embeddings with callbacks, in the manner of the little trainers everybody writes once."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

HP = dict(speakers=12, mel=20, frames=16, lr=0.08, max_epochs=40, patience=3, min_delta=1e-3)


class Utterances(Dataset):
    def __init__(self, n, seed, noise):
        g = torch.Generator().manual_seed(seed)
        voice = torch.randn(HP["speakers"], HP["mel"], generator=torch.Generator().manual_seed(99))
        self.y = torch.randint(0, HP["speakers"], (n,), generator=g)
        self.x = voice[self.y][:, :, None] + noise * torch.randn(n, HP["mel"], HP["frames"], generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Callback:
    def on_fit_start(self, trainer): ...
    def on_epoch_end(self, trainer): ...
    def on_fit_end(self, trainer): ...


class Printer(Callback):
    def on_epoch_end(self, trainer):
        if trainer.rank == 0:
            print(f"epoch {trainer.epoch}", {k: round(v, 4) for k, v in trainer.logged.items()}, flush=True)


class Patience(Callback):
    def __init__(self, monitor, patience, min_delta):
        self.monitor, self.patience, self.min_delta = monitor, patience, min_delta

    def on_fit_start(self, trainer):
        self.best, self.bad = float("inf"), 0

    def on_epoch_end(self, trainer):
        value = trainer.logged[self.monitor]
        if value < self.best - self.min_delta:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        trainer.should_stop = self.bad >= self.patience


class XVector(nn.Module):
    def __init__(self):
        super().__init__()
        self.tdnn = nn.Sequential(nn.Conv1d(HP["mel"], 32, 5), nn.ReLU(), nn.Conv1d(32, 32, 3), nn.ReLU())
        self.out = nn.Linear(64, HP["speakers"])

    def forward(self, x):
        h = self.tdnn(x)
        return self.out(torch.cat([h.mean(2), h.std(2)], 1))


class Trainer:
    def __init__(self, model, callbacks):
        self.rank = dist.get_rank()
        self.model = DDP(model)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=HP["lr"])
        self.callbacks = callbacks
        self.logged, self.should_stop, self.epoch = {}, False, 0

    def hook(self, name):
        for cb in self.callbacks:
            getattr(cb, name)(self)

    def log(self, name, total, count):
        self.logged[name] = total / count

    def run_epoch(self, loader, train):
        self.model.train(train)
        total = count = 0.0
        with torch.set_grad_enabled(train):
            for x, y in loader:
                loss = F.cross_entropy(self.model(x), y)
                if train:
                    self.opt.zero_grad()
                    loss.backward()
                    self.opt.step()
                total, count = total + loss.item() * len(y), count + len(y)
        self.log("train_loss" if train else "val_loss", total, count)

    def fit(self, train, valid):
        self.hook("on_fit_start")
        while self.epoch < HP["max_epochs"] and not self.should_stop:
            train.sampler.set_epoch(self.epoch)
            self.run_epoch(train, True)
            self.run_epoch(valid, False)
            self.hook("on_epoch_end")
            self.epoch += 1
        dist.barrier()
        self.hook("on_fit_end")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(5)
    make = lambda d: DataLoader(d, batch_size=16, sampler=DistributedSampler(d))
    trainer = Trainer(XVector(), [Printer(), Patience("val_loss", HP["patience"], HP["min_delta"])])
    trainer.fit(make(Utterances(256, 1, 1.5)), make(Utterances(64, 2, 2.5)))
    if dist.get_rank() == 0:
        print("finished after", trainer.epoch, "epochs", flush=True)
    del trainer
    dist.destroy_process_group()
