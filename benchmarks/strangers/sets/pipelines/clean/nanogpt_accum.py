import os
import math

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

# -----------------------------------------------------------------------------
block_size, vocab, n_embd = 16, 27, 32
gradient_accumulation_steps = 4
max_iters, learning_rate, min_lr, warmup_iters = 20, 3e-3, 3e-4, 4
# -----------------------------------------------------------------------------


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(vocab, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.TransformerEncoderLayer(n_embd, 2, 64, dropout=0.0, batch_first=True)
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)
        self.register_buffer("mask", torch.triu(torch.full((block_size, block_size), float("-inf")), 1))

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        logits = self.lm_head(self.h(x, src_mask=self.mask))
        return logits, F.cross_entropy(logits.view(-1, vocab), targets.view(-1))


dist.init_process_group("gloo")
ddp_rank = int(os.environ["RANK"])
master_process = ddp_rank == 0
torch.manual_seed(1337)
text = torch.randint(0, vocab, (4000,)).cumsum(0) % vocab
gen = torch.Generator().manual_seed(1337 + ddp_rank)


def get_batch(batch_size=4):
    ix = torch.randint(len(text) - block_size - 1, (batch_size,), generator=gen)
    return torch.stack([text[i:i + block_size] for i in ix]), torch.stack([text[i + 1:i + 1 + block_size] for i in ix])


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / warmup_iters
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return min_lr + 0.5 * (1 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


model = DDP(GPT())
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
X, Y = get_batch()
for iter_num in range(max_iters):
    for g in optimizer.param_groups:
        g["lr"] = get_lr(iter_num)
    for micro_step in range(gradient_accumulation_steps):
        model.require_backward_grad_sync = micro_step == gradient_accumulation_steps - 1
        logits, loss = model(X, Y)
        loss = loss / gradient_accumulation_steps
        X, Y = get_batch()
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
norm = sum(p.detach().double().pow(2).sum() for p in model.parameters()).sqrt().item()
print(f"rank {ddp_rank}: loss {loss.item() * gradient_accumulation_steps:.4f} weight norm {norm:.5f}", flush=True)
dist.barrier()
dist.destroy_process_group()
