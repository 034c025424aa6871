# trains a tiny character model, launched with torchrun
import os
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

# -----------------------------------------------------------------------------
batch_size = 4            # micro batch
block_size = 16
gradient_accumulation_steps = 8   # of the whole job
max_iters = 12
learning_rate = 3e-3
# -----------------------------------------------------------------------------
ddp = int(os.environ.get("RANK", -1)) != -1
if ddp:
    init_process_group("gloo")
    ddp_rank, ddp_world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    master_process = ddp_rank == 0
    seed_offset = ddp_rank
    assert gradient_accumulation_steps % ddp_world_size == 0
    gradient_accumulation_steps //= ddp_world_size
else:
    master_process, seed_offset, ddp_world_size = True, 0, 1
tokens_per_iter = gradient_accumulation_steps * ddp_world_size * batch_size * block_size
if master_process:
    print(f"tokens per iteration will be: {tokens_per_iter:,}", flush=True)

text = "the quick brown fox jumps over the lazy dog and runs away from the hunter. " * 60
chars = sorted(set(text))
data = torch.tensor([chars.index(c) for c in text])
gen = torch.Generator().manual_seed(1337 + seed_offset)


def get_batch():
    ix = torch.randint(len(data) - block_size - 1, (batch_size,), generator=gen).tolist()
    return torch.stack([data[i:i + block_size] for i in ix]), torch.stack([data[i + 1:i + 1 + block_size] for i in ix])


class CharModel(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, x, y):
        logits = self.head(self.rnn(self.wte(x))[0])
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())


torch.manual_seed(1337)
model = CharModel(len(chars))
if ddp:
    model = DDP(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
for iter_num in range(max_iters):
    for micro_step in range(gradient_accumulation_steps):
        last = micro_step == gradient_accumulation_steps - 1
        X, Y = get_batch()
        with nullcontext() if last or not ddp else model.no_sync():
            loss = model(X, Y) / gradient_accumulation_steps
            loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if master_process and iter_num % 4 == 0:
        print(f"iter {iter_num}: loss {loss.item() * gradient_accumulation_steps:.4f}", flush=True)
model = None
if ddp:
    destroy_process_group()
