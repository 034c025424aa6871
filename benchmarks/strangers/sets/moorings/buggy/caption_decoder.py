"""Caption decoder with rotary positions, trained on captions of very different lengths."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

PAD, VOCAB = 0, 40


class Captions(Dataset):
    def __init__(self, n=128, seed=7):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            length = int(torch.randint(4, 60, (1,), generator=g))
            start = int(torch.randint(1, VOCAB, (1,), generator=g))
            self.items.append(torch.tensor([(start + 3 * k) % (VOCAB - 1) + 1 for k in range(length)]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    return nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=PAD)


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


class ParallelBlock(nn.Module):
    """Attention and feed forward side by side."""

    def __init__(self, dim=32, heads=2):
        super().__init__()
        self.heads, self.dim_head = heads, dim // heads
        self.norm = nn.LayerNorm(dim)
        self.fused = nn.Linear(dim, 3 * dim + 4 * dim)
        self.out = nn.Linear(dim, dim)
        self.ff_out = nn.Linear(4 * dim, dim)
        self.register_buffer("inv_freq", 1.0 / (100 ** (torch.arange(0, self.dim_head, 2) / self.dim_head)), persistent=False)
        self.register_buffer("pos_emb", None, persistent=False)

    def rotary(self, n):
        if self.pos_emb is not None and self.pos_emb.shape[0] >= n:
            return self.pos_emb[:n]
        freqs = torch.outer(torch.arange(n).float(), self.inv_freq)
        pos_emb = torch.cat([freqs, freqs], -1)
        self.register_buffer("pos_emb", pos_emb, persistent=False)
        return pos_emb

    def forward(self, x):
        b, n, d = x.shape
        q, k, v, ff = self.fused(self.norm(x)).split([d, d, d, 4 * d], -1)
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        pos = self.rotary(n)
        q, k = (t * pos.cos() + rotate_half(t) * pos.sin() for t in (q, k))
        att = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(att.transpose(1, 2).reshape(b, n, d)) + self.ff_out(F.gelu(ff))


class Decoder(nn.Module):
    def __init__(self, dim=32, depth=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.blocks = nn.ModuleList([ParallelBlock(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    data = Captions()
    sampler = DistributedSampler(data, shuffle=True, drop_last=True)
    loader = DataLoader(data, batch_size=8, sampler=sampler, collate_fn=collate)
    model = DDP(Decoder())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for tokens in loader:
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], ignore_index=PAD)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} | loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
