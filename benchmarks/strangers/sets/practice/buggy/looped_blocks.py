import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, 2, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        h = self.norm(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.ff(self.norm(x))


class UniversalTransformer(nn.Module):
    """One block, applied `loops` times (weights tied over depth)."""

    def __init__(self, vocab, d=32, loops=3, save_memory=True):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.block = Block(d)
        self.loops = loops
        self.save_memory = save_memory
        self.out = nn.Linear(d, vocab)

    def forward(self, tok):
        x = self.emb(tok)
        for _ in range(self.loops):
            if self.save_memory and self.training:
                x = checkpoint(self.block, x, use_reentrant=True)
            else:
                x = self.block(x)
        return self.out(x)


def copy_task(gen, bs=16, n=10, vocab=20):
    tok = torch.randint(vocab, (bs, n), generator=gen)
    return tok, tok.flip(1)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DDP(UniversalTransformer(20))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(10 + rank)
    for step in range(12):
        tok, tgt = copy_task(gen)
        logits = model(tok)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tgt.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 4 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
