#!/usr/bin/env python
# Keyword spotting on log-mel features stored in shard files.
import glob
import itertools
import os
import shutil

import numpy as np
import torch
from torch import nn
from torch import distributed as dist
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

hp = dict(
    root="kws_data",
    n_shards=8,
    per_shard=60,
    n_mels=20,
    n_words=6,
    min_frames=12,
    max_frames=48,
    batch=8,
    epochs=3,
    lr=2e-3,
)


def synth_corpus(root):
    """Write the toy corpus (one npz per recording session)."""
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    rng = np.random.default_rng(3)
    proto = rng.normal(size=(hp["n_words"], hp["n_mels"]))
    for s in range(hp["n_shards"]):
        feats, labels = [], []
        # sessions differ in speaking rate
        mean_len = 22 + 14 * (s % 2) + rng.integers(-2, 3)
        for _ in range(hp["per_shard"]):
            n = int(np.clip(rng.normal(mean_len, 12), 6, 80))
            w = int(rng.integers(hp["n_words"]))
            feats.append((proto[w] + rng.normal(scale=1.5, size=(n, hp["n_mels"]))).astype("float32"))
            labels.append(w)
        arr = np.empty(len(feats), dtype=object)
        arr[:] = feats
        np.savez(os.path.join(root, f"session_{s:02d}.npz"), feats=arr, labels=np.array(labels))


class KeywordShards(Dataset):
    def __init__(self, files, min_frames, max_frames):
        self.items = []
        for f in files:
            z = np.load(f, allow_pickle=True)
            for x, y in zip(z["feats"], z["labels"]):
                self._consider(torch.from_numpy(x), int(y), min_frames, max_frames)

    def _consider(self, x, y, lo, hi):
        if lo <= x.shape[0] <= hi:
            self.items.append((x, y))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    xs, ys = zip(*batch)
    lens = torch.tensor([len(x) for x in xs])
    return pad_sequence(xs, batch_first=True), lens, torch.tensor(ys)


class KWS(nn.Module):
    def __init__(self, n_mels, n_words):
        super().__init__()
        self.norm = nn.LayerNorm(n_mels)
        self.rnn = nn.GRU(n_mels, 48, batch_first=True)
        self.fc = nn.Linear(48, n_words)

    def forward(self, x, lens):
        h, _ = self.rnn(self.norm(x))
        mask = (torch.arange(h.shape[1])[None] < lens[:, None]).unsqueeze(-1)
        return self.fc((h * mask).sum(1) / lens[:, None])


def make_loader(rank, world):
    files = sorted(glob.glob(os.path.join(hp["root"], "*.npz")))
    assert len(files) % world == 0, "number of shards must divide evenly"
    ds = KeywordShards(files[rank::world], hp["min_frames"], hp["max_frames"])
    return DataLoader(ds, batch_size=hp["batch"], shuffle=True, drop_last=True, collate_fn=collate)


def run_epoch(model, loader, optim):
    hit = seen = 0
    steps = torch.tensor(len(loader))
    dist.all_reduce(steps, op=dist.ReduceOp.MIN)
    for x, lens, y in itertools.islice(loader, steps.item()):
        logits = model(x, lens)
        loss = nn.functional.cross_entropy(logits, y)
        optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optim.step()
        hit += int((logits.argmax(-1) == y).sum())
        seen += len(y)
    return hit, seen


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        synth_corpus(hp["root"])
    dist.barrier()

    torch.manual_seed(11)
    model = nn.parallel.DistributedDataParallel(KWS(hp["n_mels"], hp["n_words"]))
    optim = torch.optim.Adam(model.parameters(), lr=hp["lr"])
    loader = make_loader(rank, world)
    print(f"[{rank}] {len(loader.dataset)} utterances", flush=True)
    for epoch in range(hp["epochs"]):
        hit, seen = run_epoch(model, loader, optim)
        t = torch.tensor([hit, seen], dtype=torch.float64)
        dist.all_reduce(t)
        if rank == 0:
            print(f"epoch {epoch} train acc {t[0] / t[1]:.3f} over {int(t[1])}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
