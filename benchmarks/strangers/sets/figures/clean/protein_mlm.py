"""Masked residue model over variable-length sequences."""
import argparse
import random
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Sampler

AA, PAD, MASK = 20, 20, 21


class ProteinSet(Dataset):
    def __init__(self, n=256, seed=5):
        rng = random.Random(seed)
        self.lengths = [min(400, int(rng.lognormvariate(4.2, 0.9)) + 8) for _ in range(n)]
        self.seqs = [torch.tensor([(s + i * (1 + s % 3)) % AA for i in range(n_res)])
                     for s, n_res in enumerate(self.lengths)]

    def __len__(self):
        return len(self.seqs)

    def __getitem__(self, i):
        return self.seqs[i]


class LengthGroupedSampler(Sampler):
    """Neighbours in length end up in the same batch, to save on padding."""

    def __init__(self, lengths, batch_size, rank, world_size, seed=0):
        self.lengths, self.batch_size = lengths, batch_size
        self.rank, self.world_size = rank, world_size
        self.seed, self.epoch = seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.lengths) // self.world_size // self.batch_size

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=self.lengths.__getitem__)
        per_rank = len(order) // self.world_size
        mine = order[self.rank::self.world_size][:per_rank]
        batches = [mine[i:i + self.batch_size] for i in range(0, per_rank, self.batch_size)]
        random.Random(self.seed + self.epoch).shuffle(batches)
        return iter(batches[: len(self)])


def collate(seqs):
    target = nn.utils.rnn.pad_sequence(seqs, batch_first=True, padding_value=PAD)
    hide = (torch.rand(target.shape) < 0.15) & (target != PAD)
    return torch.where(hide, MASK, target), torch.where(hide, target, -100)


class MLM(nn.Module):
    def __init__(self, d=96):
        super().__init__()
        self.emb = nn.Embedding(22, d)
        layer = nn.TransformerEncoderLayer(d, 4, 2 * d, batch_first=True, dropout=0.0)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(d, AA)

    def forward(self, x):
        return self.out(self.enc(self.emb(x), src_key_padding_mask=x == PAD))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--batch-size", type=int, default=8)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    data = ProteinSet()
    sampler = LengthGroupedSampler(data.lengths, args.batch_size, rank, world)
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=collate)
    model = DDP(MLM())
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        t0 = time.time()
        for x, y in loader:
            logits = model(x)
            nll = nn.functional.cross_entropy(logits.transpose(1, 2), y, reduction="none")
            loss = (nll.sum(1) / (y != -100).sum(1).clamp(min=1)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} time {time.time() - t0:.2f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
