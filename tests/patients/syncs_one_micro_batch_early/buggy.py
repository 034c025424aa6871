# style: nanoGPT-like script, require_backward_grad_sync set by hand
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

# configuration
block_size = 8
vocab_size = 24
gradient_accumulation_steps = 4
max_iters = 6
learning_rate = 1e-3
grad_clip = 1.0


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        h = self.norm(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(x)


class GPT(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, width)
        self.wpe = nn.Parameter(torch.zeros(block_size, width))
        self.block = Block(width)
        self.lm_head = nn.Linear(width, vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, idx, targets):
        x = self.block(self.wte(idx) + self.wpe)
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, vocab_size), targets.view(-1))


dist.init_process_group("gloo")
ddp_rank = dist.get_rank()
master_process = ddp_rank == 0
torch.manual_seed(1337)
model = DDP(GPT())
data = torch.randint(0, vocab_size, (400,), generator=torch.Generator().manual_seed(9))
draw = torch.Generator().manual_seed(500 + ddp_rank)


def get_batch(batch_size=4):
    ix = torch.randint(0, len(data) - block_size - 1, (batch_size,), generator=draw)
    x = torch.stack([data[i : i + block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + 1 + block_size] for i in ix])
    return x, y


optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95))
t0 = time.time()
for iter_num in range(max_iters):
    for micro_step in range(gradient_accumulation_steps):
        X, Y = get_batch()
        model.require_backward_grad_sync = micro_step == 0  # <-- DDP315
        logits, loss = model(X, Y)
        (loss / gradient_accumulation_steps).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()  # <-- DDP315
    optimizer.zero_grad(set_to_none=True)
    if master_process:
        print(f"iter {iter_num}: loss {loss.item():.4f}, time {time.time() - t0:.2f}s")
dist.destroy_process_group()
