# tiny GPT, torchrun --nproc_per_node=2 gpt_micro.py
import math
import os

import torch
import torch.nn as nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

block_size, vocab_size, n_embd, n_head, n_layer = 16, 48, 32, 2, 2
B, T = 4, block_size
total_batch_size = 2 * B * T * 4
max_steps, max_lr, min_lr, warmup = 24, 3e-3, 3e-4, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(c, 2)
        q, k, v = (u.view(b, t, n_head, c // n_head).transpose(1, 2) for u in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList(Block() for _ in range(n_layer))
        self.ln_f, self.lm_head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return logits, F.cross_entropy(logits.view(-1, vocab_size), targets.view(-1))


class DataLoaderLite:
    def __init__(self, rank, world):
        g = torch.Generator().manual_seed(1337)
        walk = torch.randint(-3, 4, (6000,), generator=g).cumsum(0)
        self.tokens = walk.remainder(vocab_size)
        self.world, self.pos = world, B * T * rank

    def next_batch(self):
        buf = self.tokens[self.pos:self.pos + B * T + 1]
        self.pos += B * T * self.world
        if self.pos + B * T * self.world + 1 > len(self.tokens):
            self.pos = self.pos % (B * T * self.world)
        return buf[:-1].view(B, T), buf[1:].view(B, T)


def get_lr(it):
    if it < warmup:
        return max_lr * (it + 1) / warmup
    r = (it - warmup) / (max_steps - warmup)
    return min_lr + 0.5 * (1 + math.cos(math.pi * r)) * (max_lr - min_lr)


init_process_group("gloo")
ddp_rank, ddp_world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
master_process = ddp_rank == 0
torch.manual_seed(1337)
grad_accum_steps = total_batch_size // (B * T * ddp_world_size)
train_loader = DataLoaderLite(ddp_rank, ddp_world_size)
model = DDP(GPT())
optimizer = torch.optim.AdamW(model.parameters(), lr=max_lr, betas=(0.9, 0.95))
for step in range(max_steps):
    optimizer.zero_grad()
    loss_accum = 0.0
    for micro_step in range(grad_accum_steps):
        x, y = train_loader.next_batch()
        model.require_backward_grad_sync = micro_step == grad_accum_steps - 1
        logits, loss = model(x, y)
        loss = loss / grad_accum_steps
        loss_accum += loss.detach()
        loss.backward()
    torch.distributed.all_reduce(loss_accum, op=torch.distributed.ReduceOp.SUM)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for group in optimizer.param_groups:
        group["lr"] = get_lr(step)
    optimizer.step()
    if master_process and step % 4 == 3:
        print(f"step {step:3d} | loss {loss_accum.item() / ddp_world_size:.5f} | norm {norm:.4f}", flush=True)
destroy_process_group()
