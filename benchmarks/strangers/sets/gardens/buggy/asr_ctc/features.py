import os

import torch

from parallel import main_first, sum_over_workers

N_MEL = 16


def synth_utterance(idx):
    g = torch.Generator().manual_seed(1000 + idx)
    n = int(torch.randint(18, 30, (1,), generator=g))
    units = torch.randint(1, 6, (4,), generator=g)
    spec = torch.randn(n, N_MEL, generator=g) * 0.3 + 2.0
    for k, u in enumerate(units.tolist()):
        lo = k * n // 4
        spec[lo:lo + n // 4, u * 2:u * 2 + 3] += 3.0
    return spec, units


class FeatureBank:
    """Filterbank features on disk, with global mean and variance normalisation."""

    def __init__(self, root, n_utts, rank, world):
        self.root, self.n_utts = root, n_utts
        self.mine = list(range(rank, n_utts, world))
        self.mean = torch.zeros(N_MEL)
        self.std = torch.ones(N_MEL)
        self.extract()
        self.fit_cmvn()

    def path(self, i):
        return os.path.join(self.root, f"utt{i:05d}.pt")

    def extract(self):
        for i in range(self.n_utts):
            if not os.path.exists(self.path(i)):
                torch.save(synth_utterance(i), self.path(i))

    def raw(self, i):
        return torch.load(self.path(i))

    def fit_cmvn(self):
        acc = torch.zeros(2 * N_MEL + 1)
        for i in self.mine:
            spec, _ = self.raw(i)
            acc[0] += spec.size(0)
            acc[1:N_MEL + 1] += spec.sum(0)
            acc[N_MEL + 1:] += spec.pow(2).sum(0)
        acc = sum_over_workers(acc)
        self.mean = acc[1:N_MEL + 1] / acc[0]
        self.std = (acc[N_MEL + 1:] / acc[0] - self.mean ** 2).clamp_min(1e-4).sqrt()

    def __len__(self):
        return self.n_utts

    def __getitem__(self, i):
        spec, units = self.raw(i)
        return (spec - self.mean) / self.std, units


def open_bank(root, n_utts, rank, world):
    with main_first():
        bank = FeatureBank(root, n_utts, rank, world)
    return bank


def collate(items):
    xs, ys = zip(*items)
    xl = torch.tensor([len(x) for x in xs])
    yl = torch.tensor([len(y) for y in ys])
    return torch.nn.utils.rnn.pad_sequence(xs, batch_first=True), xl, torch.cat(ys), yl
