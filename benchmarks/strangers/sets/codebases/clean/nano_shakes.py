"""Character language model on generated text; one file to train, settings at the top (nanoGPT style)."""
import math
import os
import sys
import time

import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

from nano_shakes_lib.data import Corpus
from nano_shakes_lib.model import GPTConfig, build_model

# -----------------------------------------------------------------------------
eval_interval = 40
eval_iters = 4
gradient_accumulation_steps = 4
batch_size = 8
block_size = 32
n_layer, n_head, n_embd, dropout = 2, 2, 32, 0.0
learning_rate, min_lr = 3e-3, 3e-4
max_iters, warmup_iters, lr_decay_iters = 80, 8, 80
grad_clip = 1.0
backend = "gloo"
# -----------------------------------------------------------------------------
for arg in sys.argv[1:]:
    key, val = arg.lstrip("-").split("=")
    assert key in globals(), f"Unknown config key: {key}"
    globals()[key] = type(globals()[key])(val)

ddp = int(os.environ.get("RANK", -1)) != -1
if ddp:
    init_process_group(backend=backend)
    ddp_rank, ddp_world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    master_process = ddp_rank == 0
    seed_offset = ddp_rank  # each process gets a different seed
    assert gradient_accumulation_steps % ddp_world_size == 0
    gradient_accumulation_steps //= ddp_world_size
else:
    master_process, seed_offset, ddp_world_size = True, 0, 1
tokens_per_iter = gradient_accumulation_steps * ddp_world_size * batch_size * block_size
torch.manual_seed(1337 + seed_offset)
corpus = Corpus()


def get_batch(split):
    data = corpus.train if split == "train" else corpus.val
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i:i + block_size] for i in ix])
    y = torch.stack([data[i + 1:i + 1 + block_size] for i in ix])
    return x, y


model_args = dict(n_layer=n_layer, n_head=n_head, n_embd=n_embd, block_size=block_size,
                  vocab_size=corpus.vocab_size, dropout=dropout)
model = build_model(GPTConfig(**model_args))
optimizer = model.configure_optimizers(0.1, learning_rate, (0.9, 0.95))
if ddp:
    model = DDP(model)
raw_model = model.module if ddp else model


@torch.no_grad()
def estimate_loss():
    out = {}
    raw_model.eval()
    for split in ["train", "val"]:
        out[split] = sum(raw_model(*get_batch(split))[1].item() for _ in range(eval_iters)) / eval_iters
    raw_model.train()
    return out


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    ratio = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * min(1.0, ratio))) * (learning_rate - min_lr)


t0 = time.time()
X, Y = get_batch("train")
for iter_num in range(max_iters + 1):
    for param_group in optimizer.param_groups:
        param_group["lr"] = get_lr(iter_num)
    if iter_num % eval_interval == 0 and master_process:
        losses = estimate_loss()
        print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}", flush=True)
    for micro_step in range(gradient_accumulation_steps):
        if ddp:
            model.require_backward_grad_sync = micro_step == gradient_accumulation_steps - 1
        logits, loss = model(X, Y)
        loss = loss / gradient_accumulation_steps
        X, Y = get_batch("train")
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
if master_process:
    print(f"{tokens_per_iter} tokens per iteration, {time.time() - t0:.1f}s", flush=True)
if ddp:
    del model, optimizer
    destroy_process_group()
