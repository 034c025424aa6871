"""Order of hymn lines: does line B follow line A?  Transformer encoder, variable length."""
import argparse
import math
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class LinePairs(Dataset):
    def __init__(self, n, vocab, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            la, lb = torch.randint(4, 26, (2,), generator=g).tolist()
            a = torch.randint(2, vocab, (la,), generator=g)
            label = int(torch.rand(1, generator=g) < 0.5)
            b = torch.randint(2, vocab, (lb,), generator=g)
            if label:
                b[0] = a[-1]
            self.items.append((torch.cat([a, torch.tensor([1]), b]), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def pad(batch):
    seqs, labels = zip(*batch)
    return nn.utils.rnn.pad_sequence(seqs, batch_first=True), torch.tensor(labels)


class Rotary(nn.Module):
    def __init__(self, dim, start=16):
        super().__init__()
        self.register_buffer("freq", 1.0 / 10000 ** (torch.arange(0, dim, 2) / dim), persistent=False)
        self.register_buffer("table", self._angles(start), persistent=False)

    def _angles(self, n):
        a = torch.outer(torch.arange(n).float(), self.freq)
        return torch.cat([a, a], dim=-1)

    def forward(self, q, k):
        n = q.shape[-2]
        if n > self.table.shape[0]:
            self.table = self._angles(n)
        ang = self.table[:n]
        return self._turn(q, ang), self._turn(k, ang)

    @staticmethod
    def _turn(x, ang):
        a, b = x.chunk(2, dim=-1)
        return x * ang.cos() + torch.cat([-b, a], dim=-1) * ang.sin()


class Layer(nn.Module):
    def __init__(self, dim, heads, rotary):
        super().__init__()
        self.heads, self.rotary = heads, rotary
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, keep):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        q, k = self.rotary(q, k)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, None, :])
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, d))
        return x + self.ff(self.n2(x))


class FollowNet(nn.Module):
    def __init__(self, vocab, dim=32, heads=4, depth=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        rotary = Rotary(dim // heads)
        self.layers = nn.ModuleList(Layer(dim, heads, rotary) for _ in range(depth))
        self.head = nn.Linear(dim, 2)

    def forward(self, ids):
        keep = ids != 0
        x = self.emb(ids) * math.sqrt(self.emb.embedding_dim)
        for layer in self.layers:
            x = layer(x, keep)
        w = keep.unsqueeze(-1)
        return self.head((x * w).sum(1) / w.sum(1))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--bs", type=int, default=8)
    p.add_argument("--vocab", type=int, default=40)
    p.add_argument("--lr", type=float, default=2e-3)
    a = p.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    torch.manual_seed(2)
    data = LinePairs(400, a.vocab)
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, a.bs, sampler=sampler, collate_fn=pad)
    net = DDP(FollowNet(a.vocab))
    opt = torch.optim.AdamW(net.parameters(), a.lr)
    for epoch in range(a.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(2)
        for ids, label in loader:
            loss = F.cross_entropy(net(ids), label)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            total += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {total[0] / total[1]:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
