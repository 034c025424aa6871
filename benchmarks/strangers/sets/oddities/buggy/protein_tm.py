"""Melting temperature of made-up proteins. Callbacks do the book-keeping (best checkpoint, printing)."""
import os
import tempfile
from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset

cfg = SimpleNamespace(
    epochs=5, batch=16, lr=5e-3, seq=30, aa=20, n_train=160, n_val=60,
)


def proteins(n, seed):
    g = torch.Generator().manual_seed(seed)
    seq = torch.randint(0, cfg.aa, (n, cfg.seq), generator=g)
    weight = torch.linspace(-1, 1, cfg.aa)
    tm = weight[seq].mean(1) * 5 + 0.3 * torch.randn(n, generator=g)
    return TensorDataset(seq, tm)


class Callback:
    def on_validation_end(self, trainer): ...
    def on_fit_end(self, trainer): ...


class Printer(Callback):
    def on_validation_end(self, trainer):
        if trainer.rank == 0:
            print(f"epoch {trainer.epoch}: val {trainer.val_loss:.4f}", flush=True)


class BestCheckpoint(Callback):
    def __init__(self, folder, template="epoch{epoch}-val{val_loss:.3f}-step{step}.pt"):
        self.folder = folder
        self.template = template
        self.best = float("inf")
        self.best_path = None

    def on_validation_end(self, trainer):
        if trainer.mean_val < self.best:
            self.best = trainer.mean_val
            name = self.template.format(epoch=trainer.epoch, val_loss=trainer.val_loss, step=trainer.step)
            self.best_path = os.path.join(self.folder, name)
            if trainer.rank == 0:
                os.makedirs(self.folder, exist_ok=True)
                torch.save(trainer.model.module.state_dict(), self.best_path)
            dist.barrier()

    def on_fit_end(self, trainer):
        trainer.model.module.load_state_dict(torch.load(self.best_path))


class Trainer:
    def __init__(self, model, callbacks):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.model = DDP(model)
        self.callbacks = callbacks
        self.opt = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.step = 0

    def call(self, hook):
        for cb in self.callbacks:
            getattr(cb, hook)(self)

    def shard(self, ds):
        return Subset(ds, range(self.rank, len(ds), self.world))

    @torch.no_grad()
    def validate(self, ds):
        net = self.model.module.eval()
        losses = [nn.functional.mse_loss(net(s), t) for s, t in DataLoader(self.shard(ds), cfg.batch)]
        net.train()
        self.val_loss = torch.stack(losses).mean().item()
        mean = torch.tensor(self.val_loss)
        dist.all_reduce(mean)
        self.mean_val = mean.item() / self.world

    def fit(self, train, val):
        g = torch.Generator().manual_seed(self.rank)
        loader = DataLoader(self.shard(train), cfg.batch, shuffle=True, generator=g)
        for self.epoch in range(cfg.epochs):
            for s, t in loader:
                loss = nn.functional.mse_loss(self.model(s), t)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.step += 1
            self.validate(val)
            self.call("on_validation_end")
        self.call("on_fit_end")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(cfg.aa, 8)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, s):
        return self.mlp(self.emb(s).mean(1)).squeeze(1)


def shared_dir():
    box = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(4)
    trainer = Trainer(Net(), [BestCheckpoint(shared_dir()), Printer()])
    trainer.fit(proteins(cfg.n_train, 1), proteins(cfg.n_val, 2))
    trainer.validate(proteins(cfg.n_val, 3))
    if trainer.rank == 0:
        print(f"test {trainer.mean_val:.4f}")
    dist.destroy_process_group()
