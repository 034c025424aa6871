import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        n = x.size(1)
        mask = torch.triu(torch.ones(n, n, dtype=torch.bool), 1)
        h = self.ln1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class TinyGPT(nn.Module):
    def __init__(self, vocab=48, dim=32, layers=2, heads=4, ctx=16):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(ctx, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.tok(ids) + self.pos[: ids.size(1)]
        for b in self.blocks:
            x = b(x)
        return self.head(x)


class Instructions(Dataset):
    def __init__(self, n=128, ctx=16, vocab=48):
        g = torch.Generator().manual_seed(0)
        s = torch.randint(0, vocab, (n, 1), generator=g)
        self.ids = (s + 3 * torch.arange(ctx + 1)) % vocab

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return self.ids[i, :-1], self.ids[i, 1:]


def wrap(model, mesh):
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def save_checkpoint(model, path, step):
    opts = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = get_model_state_dict(model, options=opts)
    if dist.get_rank() == 0:
        torch.save({"model": state, "step": step}, path)
        print(f"step {step}: wrote {path} ({len(state)} tensors)", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=12)
    ap.add_argument("--save-every", type=int, default=6)
    ap.add_argument("--out", default="sft_ckpt")
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    model = wrap(TinyGPT(), mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    data = Instructions()
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    os.makedirs(args.out, exist_ok=True)

    step = 0
    while step < args.steps:
        for ids, labels in loader:
            loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
            loss.backward()
            opt.step()
            opt.zero_grad()
            step += 1
            if step % args.save_every == 0:
                if rank == 0:
                    print(f"step {step} loss {loss.item():.4f}", flush=True)
                save_checkpoint(model, os.path.join(args.out, f"step{step}.pt"), step)
                dist.barrier()
            if step >= args.steps:
                break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
