"""Sequence tagger with callbacks; start with `python pronoun_tagger.py`."""
import os
import socket
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CONFIG = dict(world=2, vocab=60, tags=4, dim=24, batch=16, lr=2e-3, max_epochs=12, patience=3)


class Tagger(nn.Module):
    def __init__(self, vocab, tags, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, tags)

    def forward(self, words):
        return self.out(self.rnn(self.emb(words))[0])


def sentences(n, seed):
    g = torch.Generator().manual_seed(seed)
    words = torch.randint(0, CONFIG["vocab"], (n, 12), generator=g)
    before = torch.roll(words, 1, dims=1)
    return TensorDataset(words, (words + (before > 30)) % CONFIG["tags"])


class Callback:
    def on_validation(self, trainer, score):
        pass


class KeepBest(Callback):
    """Remembers the best score and writes the weights that reached it."""

    def __init__(self, path):
        self.path = path

    def on_validation(self, trainer, score):
        trainer.stale_epochs += 1
        if score > trainer.best_score:
            trainer.best_score = score
            trainer.stale_epochs = 0
            if trainer.is_main:
                torch.save(trainer.model.module.state_dict(), self.path)


class StopWhenStale(Callback):
    def __init__(self, patience):
        self.patience = patience

    def on_validation(self, trainer, score):
        if trainer.stale_epochs >= self.patience:
            trainer.finished = True


class PrintScore(Callback):
    def on_validation(self, trainer, score):
        if trainer.is_main:
            print(f"epoch {trainer.epoch:2d} accuracy {score:.4f}", flush=True)


class Trainer:
    def __init__(self, model, cfg, callbacks):
        self.model, self.cfg, self.callbacks = model, cfg, callbacks
        self.is_main = dist.get_rank() == 0
        self.best_score, self.stale_epochs, self.finished = float("-inf"), 0, False
        self.opt = torch.optim.Adam(model.parameters(), lr=cfg["lr"])

    def train_epoch(self, loader):
        for words, tags in loader:
            loss = nn.functional.cross_entropy(self.model(words).flatten(0, 1), tags.flatten())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def validate(self, loader):
        hits = torch.zeros(2, dtype=torch.float64)
        for words, tags in loader:
            right = self.model.module(words).argmax(-1) == tags
            hits += torch.tensor([right.sum().item(), right.numel()], dtype=torch.float64)
        dist.all_reduce(hits)
        return (hits[0] / hits[1]).item()

    def fit(self, train, val):
        for self.epoch in range(self.cfg["max_epochs"]):
            train.sampler.set_epoch(self.epoch)
            self.train_epoch(train)
            score = self.validate(val)
            for cb in self.callbacks:
                cb.on_validation(self, score)
            if self.finished:
                break
        dist.barrier()
        return self.best_score


def worker(rank, port, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=CONFIG["world"])
    torch.manual_seed(11)
    model = DistributedDataParallel(Tagger(CONFIG["vocab"], CONFIG["tags"], CONFIG["dim"]))
    train, val = sentences(320, 1), sentences(96, 2)
    loaders = [DataLoader(d, CONFIG["batch"], sampler=DistributedSampler(d, shuffle=s))
               for d, s in ((train, True), (val, False))]
    callbacks = [KeepBest(os.path.join(folder, "best.pt")), StopWhenStale(CONFIG["patience"]), PrintScore()]
    best = Trainer(model, CONFIG, callbacks).fit(*loaders)
    if rank == 0:
        print(f"best accuracy {best:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free_port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as out:
        mp.spawn(worker, args=(free_port, out), nprocs=CONFIG["world"])
