# Fine-tuning notebook turned script: adapters on a frozen transformer, activation checkpointing on.
# %%
import math

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

VOCAB, DIM, LAYERS, HEADS, RANK_R = 40, 32, 3, 4, 4


# %% adapters
class LoraLinear(nn.Module):
    def __init__(self, base, r=RANK_R, alpha=8):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(r, base.in_features) / math.sqrt(base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, r))
        self.scale = alpha / r

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.lora_a), self.lora_b) * self.scale


# %% model
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 2 * DIM), nn.Linear(2 * DIM, DIM)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, DIM))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        h = self.embed(ids)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False)
        return self.head(h)


def add_adapters(model, names=("qkv", "down")):
    for p in model.parameters():
        p.requires_grad_(False)
    for block in model.blocks:
        for n in names:
            setattr(block, n, LoraLinear(getattr(block, n)))
    return model


# %% data
def conversation(gen):
    start = torch.randint(0, VOCAB, (6, 1), generator=gen)
    return (start + 3 * torch.arange(17)) % VOCAB


# %% training
def finetune():
    torch.manual_seed(0)
    model = add_adapters(Decoder())
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    if dist.get_rank() == 0:
        print(f"trainable parameters: {trainable}", flush=True)
    ddp = DDP(model)
    opt = torch.optim.AdamW([p for p in ddp.parameters() if p.requires_grad], lr=5e-3)
    gen = torch.Generator().manual_seed(10 + dist.get_rank())
    for step in range(12):
        ids = conversation(gen)
        logits = ddp(ids[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), ids[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"rank {dist.get_rank()} last loss on its own batch {loss.item():.3f}", flush=True)


# %%
if __name__ == "__main__":
    dist.init_process_group("gloo")
    finetune()
    dist.destroy_process_group()
