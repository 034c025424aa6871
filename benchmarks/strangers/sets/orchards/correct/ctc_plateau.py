"""Tiny CTC recogniser: features prepared once, lr lowered on a plateau of the global dev loss."""
import argparse
import glob
import os
import shutil

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

SYMBOLS = 6


def once(fn):
    """Run on process 0, everybody else waits for it."""
    def wrapped(*a, **k):
        if dist.get_rank() == 0:
            fn(*a, **k)
        dist.barrier()
    return wrapped


@once
def prepare(folder, n):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    rng = np.random.default_rng(0)
    proto = rng.normal(size=(SYMBOLS, 10)) * 2
    for i in range(n):
        word = rng.integers(1, SYMBOLS, size=rng.integers(2, 5))
        word = word[np.insert(word[1:] != word[:-1], 0, True)]
        frames = np.concatenate([np.repeat(proto[[s]], rng.integers(3, 6), 0) for s in word])
        frames = frames + rng.normal(scale=0.7, size=frames.shape)
        np.savez(f"{folder}/{i:04d}.npz", x=frames.astype("float32"), y=word)


class Utterances(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        z = np.load(self.files[i])
        return torch.from_numpy(z["x"]), torch.from_numpy(z["y"])


def pad(rows):
    xs, ys = zip(*rows)
    return (nn.utils.rnn.pad_sequence(xs, batch_first=True), torch.tensor([len(x) for x in xs]),
            torch.cat(ys), torch.tensor([len(y) for y in ys]))


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(10, 48, 3, padding=1)
        self.rnn = nn.GRU(48, 48, batch_first=True, bidirectional=True)
        self.out = nn.Linear(96, SYMBOLS)

    def forward(self, x):
        h = torch.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        return self.out(self.rnn(h)[0]).log_softmax(-1)


def ctc(model, batch, reduction="mean"):
    x, xl, y, yl = batch
    return nn.functional.ctc_loss(model(x).transpose(0, 1), y, xl, yl, reduction=reduction, zero_infinity=True)


@torch.no_grad()
def dev_loss(model, loader):
    t = torch.zeros(2)
    for b in loader:
        t += torch.tensor([ctc(model.module, b, "sum").item(), len(b[1])])
    dist.all_reduce(t)
    return (t[0] / t[1]).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--folder", default="ctc_data")
    ap.add_argument("--epochs", type=int, default=6)
    a = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    prepare(a.folder, 400)
    files = sorted(glob.glob(f"{a.folder}/*.npz"))
    train, dev = Utterances(files[:340]), Utterances(files[340:][rank::world])
    sampler = DistributedSampler(train)
    dl = DataLoader(train, 10, sampler=sampler, collate_fn=pad)
    dev_dl = DataLoader(dev, 10, collate_fn=pad)
    torch.manual_seed(6)
    model = nn.parallel.DistributedDataParallel(Recogniser())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.3, patience=0, threshold=0.3)
    for epoch in range(a.epochs):
        sampler.set_epoch(epoch)
        for b in dl:
            opt.zero_grad()
            ctc(model, b).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
        d = dev_loss(model, dev_dl)
        plateau.step(d)
        if rank == 0:
            print(f"epoch {epoch} dev ctc {d:.3f} lr {opt.param_groups[0]['lr']:.1e}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
