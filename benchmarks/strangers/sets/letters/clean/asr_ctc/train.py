"""Character CTC on made-up filterbank features.   torchrun --nproc_per_node 2 train.py"""
import argparse
import logging

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from guard import everybody, tolerate

VOCAB = 12
MELS = 16


class Utterances(Dataset):
    def __init__(self, n=96):
        g = torch.Generator().manual_seed(8)
        self.items = []
        for i in range(n):
            chars = torch.randint(1, VOCAB, (int(torch.randint(3, 7, (1,), generator=g)),), generator=g)
            frames = int(torch.randint(24, 60, (1,), generator=g))
            if i % 31 == 17:
                frames = 96
            feats = torch.randn(frames, MELS, generator=g)
            feats[:, 0] += chars.float().mean()
            self.items.append((feats, chars))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(rows):
    feats, chars = zip(*rows)
    return (pad_sequence(feats, batch_first=True), torch.tensor([len(f) for f in feats]),
            torch.cat(chars), torch.tensor([len(c) for c in chars]))


class Encoder(nn.Module):
    def __init__(self, dim=32, max_frames=80):
        super().__init__()
        self.inp = nn.Linear(MELS, dim)
        self.pos = nn.Parameter(torch.randn(max_frames, dim) * 0.02)
        self.mix = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, x):
        if x.shape[1] > self.pos.shape[0]:
            raise ValueError(f"{x.shape[1]} frames, the position table has {self.pos.shape[0]}")
        h, _ = self.mix(self.inp(x) + self.pos[: x.shape[1]])
        return self.out(h).log_softmax(-1)


class Recipe:
    def __init__(self, args):
        self.args = args
        self.rank = dist.get_rank()
        data = Utterances()
        self.sampler = DistributedSampler(data, seed=args.seed)
        self.loader = DataLoader(data, args.bs, sampler=self.sampler, collate_fn=collate, drop_last=True)
        self.net = DDP(Encoder())
        self.ctc = nn.CTCLoss(zero_infinity=True)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=args.lr)

    @tolerate(ValueError)
    def check(self, feats):
        limit = self.net.module.pos.shape[0]
        if feats.shape[1] > limit:
            raise ValueError(f"{feats.shape[1]} frames, the position table has {limit}")
        return feats

    def step(self, feats, n_feats, chars, n_chars):
        if not everybody(self.check(feats) is not None):
            return None
        logp = self.net(feats)
        loss = self.ctc(logp.transpose(0, 1), chars, n_feats, n_chars)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 5.0)
        self.opt.step()
        return loss.item()

    def fit(self):
        for epoch in range(self.args.epochs):
            self.sampler.set_epoch(epoch)
            seen = [self.step(*batch) for batch in self.loader]
            seen = [v for v in seen if v is not None]
            dist.barrier()
            if self.rank == 0:
                print(f"epoch {epoch} ctc {sum(seen) / len(seen):.3f} ({len(seen)} steps)", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--bs", type=int, default=4)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=2)
    args = p.parse_args()
    logging.basicConfig(level=logging.WARNING)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(args.seed)
    Recipe(args).fit()
    dist.destroy_process_group()
