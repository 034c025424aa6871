"""Masked prediction for a small speech encoder.

    torchrun --nproc_per_node=2 speech_encoder_pretrain.py --steps 40
"""
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

MODEL = {"dim": 32, "heads": 4, "layers": 6, "layer_drop": 0.15, "codes": 20}


def fake_utterances(batch, generator):
    """Log-mel like features and discrete targets for each frame."""
    code = torch.randint(0, MODEL["codes"], (batch, 25), generator=generator)
    table = torch.randn(MODEL["codes"], 40, generator=torch.Generator().manual_seed(9))
    return table[code] + 0.3 * torch.randn(batch, 25, 40, generator=generator), code


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self, dim, heads, layers, layer_drop, codes):
        super().__init__()
        self.front = nn.Linear(40, dim)
        self.mask_vec = nn.Parameter(torch.zeros(dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.layer_drop = layer_drop
        self.head = nn.Linear(dim, codes)

    def forward(self, feats, mask):
        x = self.front(feats)
        x = torch.where(mask.unsqueeze(-1), self.mask_vec, x)
        keep = torch.rand(len(self.blocks)) >= self.layer_drop
        for block, kept in zip(self.blocks, keep.tolist()):
            if kept or not self.training:
                x = block(x)
        return self.head(x)


def build(rank):
    torch.manual_seed(20)
    encoder = Encoder(**MODEL)
    torch.manual_seed(200 + rank)        # masks and regularisation differ between workers
    return DDP(encoder, gradient_as_bucket_view=True, find_unused_parameters=True)


def pretrain(model, steps, rank):
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    warmup = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 10))
    g = torch.Generator().manual_seed(rank)
    for step in range(steps):
        feats, code = fake_utterances(8, g)
        mask = torch.rand(code.shape, generator=g) < 0.3
        mask[:, 0] = True
        logits = model(feats, mask)
        loss = nn.functional.cross_entropy(logits[mask], code[mask])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        warmup.step()
        if rank == 0 and step % 10 == 9:
            print(f"step {step + 1} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    opts = parser.parse_args()
    dist.init_process_group("gloo")
    pretrain(build(dist.get_rank()), opts.steps, dist.get_rank())
    dist.barrier()
    dist.destroy_process_group()
