"""Fine-tuning a byte model on support chats, weights sharded with FSDP2.

    torchrun --nproc_per_node 2 lm_shard.py --steps 40
"""
import argparse
import contextlib
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

PHRASES = [
    b"hello, my order has not arrived yet. ", b"please restart the router and try again. ",
    b"thank you, that solved the problem! ", b"could you send me the invoice once more? ",
]


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.n1(x)).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class ByteLM(nn.Module):
    def __init__(self, d=48, depth=2, ctx=48):
        super().__init__()
        self.tok = nn.Embedding(128, d)
        self.pos = nn.Embedding(ctx, d)
        self.blocks = nn.ModuleList(Block(d, 4) for _ in range(depth))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, 128)

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight[: ids.shape[1]]
        for blk in self.blocks:
            x = blk(x)
        return self.head(self.norm(x))


def chats(rank, ctx, batch):
    g = torch.Generator().manual_seed(1000 + rank)
    while True:
        rows = []
        for _ in range(batch):
            order = torch.randint(len(PHRASES), (4,), generator=g).tolist()
            text = b"".join(PHRASES[i] for i in order)
            rows.append(torch.tensor(list(text[: ctx + 1])))
        ids = torch.stack(rows)
        yield ids[:, :-1], ids[:, 1:]


class Telemetry:
    def __init__(self, every, quiet):
        self.every, self.quiet = every, quiet
        self.t0 = time.perf_counter()
        self.window = {}

    def add(self, **values):
        for k, v in values.items():
            self.window.setdefault(k, []).append(v)

    @staticmethod
    def scalar(v):
        if hasattr(v, "full_tensor"):
            v = v.full_tensor()
        return float(v)

    def flush(self, step):
        if step % self.every:
            return
        window, self.window = self.window, {}
        if self.quiet:
            return
        means = {k: sum(map(self.scalar, vs)) / len(vs) for k, vs in window.items()}
        spent = time.perf_counter() - self.t0
        print(f"step {step} " + " ".join(f"{k} {v:.4f}" for k, v in means.items()) + f" ({spent:.1f}s)", flush=True)


@contextlib.contextmanager
def process_group(backend):
    dist.init_process_group(backend)
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=30)
    ap.add_argument("--ctx", type=int, default=48)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--clip", type=float, default=1.0)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args()
    torch.set_num_threads(1)
    with process_group("gloo") as (rank, world):
        torch.manual_seed(4)
        mesh = init_device_mesh("cpu", (world,))
        model = ByteLM(ctx=args.ctx)
        for blk in model.blocks:
            fully_shard(blk, mesh=mesh)
        fully_shard(model, mesh=mesh)
        opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
        telemetry = Telemetry(every=10, quiet=rank != 0)
        stream = chats(rank, args.ctx, args.batch)
        for step in range(1, args.steps + 1):
            ids, nxt = next(stream)
            loss = F.cross_entropy(model(ids).flatten(0, 1), nxt.flatten())
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            opt.step()
            opt.zero_grad()
            mean = loss.detach()
            dist.all_reduce(mean)
            telemetry.add(loss=mean / world, grad_norm=norm, embed_norm=model.tok.weight.detach().norm())
            telemetry.flush(step)
        dist.barrier()


if __name__ == "__main__":
    main()
