"""Transliteration with an expert layer whose experts sit on different workers; greedy decoding for the dev score."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

BOS, EOS, LETTERS = 0, 1, 26


class Exchange(torch.autograd.Function):
    """Equal-sized all-to-all; its backward is the same exchange."""

    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        dist.all_to_all_single(out, x.contiguous())
        return out

    @staticmethod
    def backward(ctx, grad):
        out = torch.empty_like(grad)
        dist.all_to_all_single(out, grad.contiguous())
        return out


class ExpertLayer(nn.Module):
    """Half of the hidden units of every token are served by the expert of another worker."""

    def __init__(self, dim):
        super().__init__()
        self.world = dist.get_world_size()
        self.expert = nn.Sequential(nn.Linear(dim // self.world, dim), nn.ReLU(), nn.Linear(dim, dim // self.world))

    def forward(self, h):
        parts = torch.stack(h.chunk(self.world, -1))
        parts = Exchange.apply(parts)
        parts = Exchange.apply(self.expert(parts))
        return h + torch.cat(list(parts), -1)


class Decoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.src = nn.Embedding(LETTERS + 2, dim)
        self.tgt = nn.Embedding(LETTERS + 2, dim)
        self.cell = nn.GRUCell(2 * dim, dim)
        self.moe = ExpertLayer(dim)
        self.out = nn.Linear(dim, LETTERS + 2)

    def step(self, prev, letter, h):
        h = self.cell(torch.cat([self.tgt(prev), self.src(letter)], -1), h)
        return self.out(self.moe(h)), h

    def forward(self, src, tgt):
        h = src.new_zeros(len(src), 32, dtype=torch.float)
        logits, prev = [], torch.full((len(src),), BOS)
        for t in range(src.shape[1]):
            o, h = self.step(prev, src[:, t], h)
            logits.append(o)
            prev = tgt[:, t]
        return torch.stack(logits, 1)


def words(n, length, gen):
    src = torch.randint(2, LETTERS + 2, (n, length), generator=gen)
    src[:, -1] = EOS
    tgt = (src - 2 + 7) % LETTERS + 2
    tgt[:, -1] = EOS
    return src, tgt


@torch.no_grad()
def greedy(net, src, max_len):
    h = torch.zeros(len(src), 32)
    prev, done, hyp = torch.full((len(src),), BOS), torch.zeros(len(src), dtype=torch.bool), []
    limit = torch.tensor(max_len)
    dist.all_reduce(limit, op=dist.ReduceOp.MAX)
    while len(hyp) < limit:
        t = min(len(hyp), src.shape[1] - 1)
        logits, h = net.step(prev, src[:, t], h)
        prev = logits.argmax(-1)
        done |= prev == EOS
        hyp.append(prev)
    return torch.stack(hyp[:max_len], 1)


def dev_score(net, dev):
    good = torch.zeros(2)
    for src, tgt in dev:
        hyp = greedy(net, src, max_len=2 * src.shape[1])
        n = min(hyp.shape[1], tgt.shape[1])
        good += torch.tensor([(hyp[:, :n] == tgt[:, :n]).sum().item(), tgt.numel()])
    dist.all_reduce(good)
    return (good[0] / good[1]).item()


def main():
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    model = DDP(Decoder())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    gen = torch.Generator().manual_seed(rank)
    dev = [words(8, int(n), gen) for n in torch.randint(4, 12, (6,), generator=gen)]
    for step in range(60):
        src, tgt = words(16, 6, gen)
        loss = F.cross_entropy(model(src, tgt).flatten(0, 1), tgt.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 29:
            acc = dev_score(model.module, dev)
            if rank == 0:
                print(f"step {step} loss {loss.item():.3f} letters right {acc:.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
