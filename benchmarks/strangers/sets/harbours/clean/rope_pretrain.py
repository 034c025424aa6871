import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

max_seq = 1536
n_layer, n_head, d_model = 4, 2, 32
vocab, block, batch_size = 96, 24, 4
iters, lr = 20, 3e-3


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.o = nn.Linear(d_model, d_model, bias=False)
        hd = d_model // n_head
        freq = 1.0 / (10000 ** (torch.arange(0, hd, 2).float() / hd))
        ang = torch.outer(torch.arange(max_seq).float(), freq)
        self.register_buffer("cos", ang.cos().repeat(1, 2), persistent=False)
        self.register_buffer("sin", ang.sin().repeat(1, 2), persistent=False)
        self.register_buffer("causal", torch.full((max_seq, max_seq), float("-inf")).triu(1), persistent=False)

    def rot(self, x):
        T = x.size(2)
        a, b = x.chunk(2, -1)
        return x * self.cos[:T] + torch.cat((-b, a), -1) * self.sin[:T]

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, n_head, -1).transpose(1, 2) for t in self.qkv(x).split(C, 2))
        att = self.rot(q) @ self.rot(k).transpose(-2, -1) / (C // n_head) ** 0.5 + self.causal[:T, :T]
        return self.o((att.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.att = Attention()
        self.ff = nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.SiLU(), nn.Linear(2 * d_model, d_model))

    def forward(self, x):
        x = x + self.att(self.n1(x))
        return x + self.ff(self.n2(x))


class MiniLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(vocab, d_model)
        self.layers = nn.Sequential(*[Layer() for _ in range(n_layer)])
        self.head = nn.Linear(d_model, vocab, bias=False)

    def forward(self, idx, tgt):
        return F.cross_entropy(self.head(self.layers(self.emb(idx))).flatten(0, 1), tgt.flatten())


def get_batch(stream, g):
    ix = torch.randint(0, len(stream) - block - 1, (batch_size,), generator=g).tolist()
    return (torch.stack([stream[i:i + block] for i in ix]), torch.stack([stream[i + 1:i + block + 1] for i in ix]))


def train():
    rank = int(os.environ["RANK"])
    torch.manual_seed(1337)
    model = DDP(MiniLM(), broadcast_buffers=False)
    optim = torch.optim.AdamW(model.parameters(), lr=lr)
    stream = (torch.arange(20000) * 7 + torch.arange(20000) // 11) % vocab
    g = torch.Generator().manual_seed(rank)
    t0 = time.time()
    for it in range(iters):
        x, y = get_batch(stream, g)
        loss = model(x, y)
        optim.zero_grad(set_to_none=True)
        loss.backward()
        optim.step()
        if rank == 0 and it % 5 == 0:
            print(f"iter {it}: loss {loss.item():.3f}", flush=True)
    if rank == 0:
        print(f"{(time.time() - t0) / iters * 1000:.1f} ms per iter", flush=True)


dist.init_process_group(backend="gloo")
train()
dist.destroy_process_group()
