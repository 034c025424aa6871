import argparse
import string

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, DistributedSampler

VOCAB = string.ascii_lowercase + " "


class CharDataset(Dataset):
    def __init__(self, block):
        text = "the quick brown fox jumps over the lazy dog and runs away " * 40
        self.ids = torch.tensor([VOCAB.index(c) for c in text])
        self.block = block

    def __len__(self):
        return (len(self.ids) - 1) // self.block

    def __getitem__(self, i):
        chunk = self.ids[i * self.block:i * self.block + self.block + 1]
        return chunk[:-1], chunk[1:]


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, mask):
        h = self.ln1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class CharLM(nn.Module):
    def __init__(self, dim=32, heads=2, depth=2, block=24, grad_ckpt=False):
        super().__init__()
        self.tok = nn.Embedding(len(VOCAB), dim)
        self.pos = nn.Parameter(0.02 * torch.randn(1, block, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.head = nn.Linear(dim, len(VOCAB))
        self.grad_ckpt = grad_ckpt

    def forward(self, ids):
        n = ids.size(1)
        mask = torch.triu(torch.ones(n, n, dtype=torch.bool), 1)
        x = self.tok(ids) + self.pos[:, :n]
        for blk in self.blocks:
            if self.grad_ckpt and self.training:
                x = checkpoint(blk, x, mask, use_reentrant=True)
            else:
                x = blk(x, mask)
        return self.head(x)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--block", type=int, default=24)
    ap.add_argument("--batch-size", type=int, default=6)
    ap.add_argument("--no-grad-ckpt", dest="grad_ckpt", action="store_false")
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1337)
    data = CharDataset(args.block)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)
    net = CharLM(block=args.block, grad_ckpt=args.grad_ckpt)
    model = DDP(net, find_unused_parameters=True)
    optim = torch.optim.AdamW(model.parameters(), lr=3e-3)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            logits = model(x)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
            optim.zero_grad(set_to_none=True)
            loss.backward()
            optim.step()
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
