"""
Character model trained in two stages on a growing corpus: `short` lines first,
then everything, continuing from the checkpoint of the first stage.

$ torchrun --standalone --nproc_per_node=2 char_stages.py
"""
import math
import os
import shutil
import tempfile
import time

import torch
import torch.nn as nn
from torch.distributed import (
    barrier,
    broadcast_object_list,
    destroy_process_group,
    init_process_group,
)
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

# -----------------------------------------------------------------------------
# I/O
log_interval = 10
# data
batch_size = 16
block_size = 24
# model
n_embd = 32
n_head = 4
# optimizer
learning_rate = 3e-3
min_lr = 3e-4
stage_iters = {"short": 30, "all": 70}
decay_iters = 70
grad_clip = 1.0
# -----------------------------------------------------------------------------

init_process_group(backend="gloo")
ddp_rank = int(os.environ["RANK"])
ddp_world_size = int(os.environ["WORLD_SIZE"])
master_process = ddp_rank == 0
torch.manual_seed(1337 + ddp_rank)

box = [tempfile.mkdtemp(prefix="out_char_") if master_process else None]
broadcast_object_list(box, src=0)
out_dir = box[0]
ckpt_path = os.path.join(out_dir, "ckpt.pt")

text = "".join(
    f"the {a} {b} {c} the {d}.\n"
    for a in ("old", "red", "big")
    for b in ("fox", "dog", "cat", "hen")
    for c in ("sees", "likes", "hears")
    for d in ("barn", "moon", "well", "crow", "miller of the north")
)
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
corpus = {
    "all": torch.tensor([stoi[c] for c in text]),
    "short": torch.tensor([stoi[c] for c in text[: len(text) // 3]]),
}


def get_batch(stage):
    data = corpus[stage]
    ix = torch.randint(len(data) - block_size - 1, (batch_size,))
    x = torch.stack([data[i:i + block_size] for i in ix])
    y = torch.stack([data[i + 1:i + 1 + block_size] for i in ix])
    return x, y


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(len(chars), n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.block = nn.TransformerEncoderLayer(
            n_embd, n_head, 2 * n_embd, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Linear(n_embd, len(chars))
        self.register_buffer(
            "mask", torch.triu(torch.full((block_size, block_size), float("-inf")), 1)
        )

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe.weight[: idx.size(1)]
        logits = self.head(self.block(x, src_mask=self.mask))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_lr(it):
    ratio = min(it / decay_iters, 1.0)
    return min_lr + 0.5 * (1 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


def train_stage(stage):
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    iter_num = 0
    if master_process and os.path.exists(ckpt_path):
        checkpoint = torch.load(ckpt_path)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        iter_num = checkpoint["iter_num"]
        print(f"resuming from {os.path.basename(ckpt_path)} at iter {iter_num}", flush=True)
    # rank 0's weights go to everybody here
    model = DDP(model)

    t0 = time.time()
    while iter_num < stage_iters[stage]:
        for group in optimizer.param_groups:
            group["lr"] = get_lr(iter_num)
        loss = model(*get_batch(stage))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if iter_num % log_interval == 0 and master_process:
            dt, t0 = time.time() - t0, time.time()
            print(f"{stage} iter {iter_num}: loss {loss.item():.4f}, {dt * 1000:.0f}ms", flush=True)
        iter_num += 1

    if master_process:
        torch.save(
            {
                "model": model.module.state_dict(),
                "optimizer": optimizer.state_dict(),
                "iter_num": iter_num,
            },
            ckpt_path,
        )
    barrier()


for name in ("short", "all"):
    train_stage(name)
if master_process:
    shutil.rmtree(out_dir)
destroy_process_group()
