"""Transformer tagger with progressive layer dropping.

The drop rate of a layer grows with depth and with training time. All ranks
drop the same layers in a step (the draw is seeded with the step number).
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class ProgressiveDrop:
    def __init__(self, n_layers, p_max, ramp):
        self.n_layers, self.p_max, self.ramp = n_layers, p_max, ramp

    def keep(self, step):
        g = torch.Generator().manual_seed(step)
        frac = min(1.0, step / self.ramp)
        rates = torch.arange(1, self.n_layers + 1) / self.n_layers * self.p_max * frac
        return (torch.rand(self.n_layers, generator=g) >= rates).tolist()


class Tagger(nn.Module):
    def __init__(self, vocab=40, tags=5, dim=24, n_layers=4):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(1, 20, dim))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 4, 48, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(n_layers)
        )
        self.out = nn.Linear(dim, tags)

    def forward(self, tokens, keep):
        h = self.emb(tokens) + self.pos[:, : tokens.size(1)]
        for used, layer in zip(keep, self.layers):
            if used:
                h = layer(h)
        return self.out(h)


def make_batch(gen, n=16, length=20, vocab=40):
    x = torch.randint(0, vocab, (n, length), generator=gen)
    left = torch.roll(x, 1, dims=1)
    left[:, 0] = 0
    return x, (x // 8 + (left >= vocab // 2).long()) % 5


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)

    n_layers, steps = 4, 60
    model = DDP(Tagger(n_layers=n_layers), static_graph=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    drop = ProgressiveDrop(n_layers, p_max=0.5, ramp=30)
    gen = torch.Generator().manual_seed(500 + rank)

    for step in range(steps):
        x, y = make_batch(gen)
        logits = model(x, drop.keep(step))
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if rank == 0:
                print(f"step {step:3d} loss {mean.item() / dist.get_world_size():.3f}", flush=True)

    model.eval()
    x, y = make_batch(torch.Generator().manual_seed(9000 + rank), n=64)
    with torch.no_grad():
        pred = model.module(x, [True] * n_layers).argmax(-1)
    acc = (pred == y).float().mean().reshape(1)
    dist.all_reduce(acc)
    if rank == 0:
        print(f"accuracy {acc.item() / dist.get_world_size():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
