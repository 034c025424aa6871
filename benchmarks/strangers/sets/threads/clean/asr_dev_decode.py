"""CTC phone recogniser. After every epoch the dev set is decoded on all ranks and scored on rank 0."""
import logging
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.rnn import pad_sequence

log = logging.getLogger("asr")
PHONES = 9


def make_utterances(n, seed):
    g = torch.Generator().manual_seed(seed)
    table = torch.randn(PHONES + 1, 13, generator=torch.Generator().manual_seed(0)) * 2
    utts = []
    for _ in range(n):
        words = torch.randint(1, PHONES + 1, (int(torch.randint(3, 9, (1,), generator=g)),), generator=g)
        dur = torch.randint(3, 7, (len(words),), generator=g)
        feats = table[words.repeat_interleave(dur)]
        utts.append((feats + 0.3 * torch.randn(feats.shape, generator=g), words))
    return utts


def batches(utts, size, rank, world):
    mine = sorted(utts[rank::world], key=lambda u: len(u[0]))
    for i in range(0, len(mine) - size + 1, size):
        part = mine[i:i + size]
        feats = pad_sequence([f for f, _ in part], batch_first=True)
        yield feats, torch.tensor([len(f) for f, _ in part]), [w for _, w in part]


class Acoustic(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.rnn = nn.GRU(13, hidden, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hidden, PHONES + 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0]).log_softmax(-1)


class Gatherer:
    """Brings the outputs of all ranks together, batch by batch."""

    def __init__(self):
        self.world = dist.get_world_size()

    def pad_to_longest(self, t, dim):
        size = torch.tensor([t.size(dim)])
        dist.all_reduce(size, op=dist.ReduceOp.MAX)
        missing = int(size) - t.size(dim)
        if missing == 0:
            return t
        shape = list(t.shape)
        shape[dim] = missing
        return torch.cat([t, t.new_zeros(shape)], dim)

    def __call__(self, t):
        parts = [torch.empty_like(t) for _ in range(self.world)]
        dist.all_gather(parts, t.contiguous())
        return torch.cat(parts)


def greedy(logp, length):
    ids = torch.unique_consecutive(logp[:length].argmax(-1))
    return ids[ids != 0].tolist()


def edits(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        prev, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (x != y))
    return row[-1]


def decode(model, dev, rank, world):
    gather, wrong, total = Gatherer(), 0, 0
    model.eval()
    for feats, lens, words in batches(dev, 4, rank, world):
        with torch.no_grad():
            logp = model(feats)
        refs = gather.pad_to_longest(pad_sequence(words, batch_first=True), 1)
        logp, lens, refs = gather(gather.pad_to_longest(logp, 1)), gather(lens), gather(refs)
        for lp, n, ref in zip(logp, lens, refs):
            ref = ref[ref > 0].tolist()
            wrong += edits(greedy(lp, int(n)), ref)
            total += len(ref)
    model.train()
    return wrong / total


def main():
    logging.basicConfig(level=logging.INFO if os.environ["RANK"] == "0" else logging.ERROR, format="%(message)s")
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = DistributedDataParallel(Acoustic())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    train, dev = make_utterances(96, 5), make_utterances(32, 6)
    for epoch in range(3):
        for feats, lens, words in batches(train, 8, rank, world):
            lp = model(feats).transpose(0, 1)
            loss = nn.functional.ctc_loss(lp, torch.cat(words), lens, torch.tensor([len(w) for w in words]))
            opt.zero_grad()
            loss.backward()
            opt.step()
        log.info("epoch %d ctc %.3f per %.3f", epoch, loss.item(), decode(model, dev, rank, world))
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
