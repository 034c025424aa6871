"""Character translation model; gradients are packed into a flat buffer and reduced chunk by chunk."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn


def all_reduce_and_rescale(tensors, denom, buffer_numel=1 << 21):
    buf = tensors[0].new_zeros(buffer_numel)
    pending, filled = [], 0

    def flush():
        nonlocal pending, filled
        if not pending:
            return
        pos = 0
        for t in pending:
            buf[pos:pos + t.numel()].copy_(t.view(-1))
            pos += t.numel()
        dist.all_reduce(buf[:pos])
        buf.div_(denom)
        pos = 0
        for t in pending:
            t.view(-1).copy_(buf[pos:pos + t.numel()])
            pos += t.numel()
        pending, filled = [], 0

    for t in tensors:
        if t.numel() > buffer_numel:
            dist.all_reduce(t)
            t.div_(denom)
            continue
        if filled + t.numel() > buffer_numel:
            flush()
        pending.append(t)
        filled += t.numel()
    flush()


class Seq2Seq(nn.Module):
    def __init__(self, vocab=40, dim=192):
        super().__init__()
        self.src, self.tgt = nn.Embedding(vocab, dim), nn.Embedding(vocab, dim)
        self.enc, self.dec = nn.GRU(dim, dim, batch_first=True), nn.GRU(dim, dim, batch_first=True)
        self.gen = nn.Linear(dim, vocab)

    def forward(self, src, tgt):
        _, h = self.enc(self.src(src))
        out, _ = self.dec(self.tgt(tgt[:, :-1]), h)
        return nn.functional.cross_entropy(self.gen(out).flatten(0, 1), tgt[:, 1:].flatten())


class Trainer:
    def __init__(self, model, opt, n_workers):
        self.model, self.opt, self.n_workers = model, opt, n_workers

    def train_step(self, src, tgt):
        self.opt.zero_grad()
        loss = self.model(src, tgt)
        loss.backward()
        if self.n_workers > 1:
            grads = [p.grad.data for p in self.model.parameters() if p.requires_grad and p.grad is not None]
            all_reduce_and_rescale(grads, float(self.n_workers))
        self.opt.step()
        return loss.item()


def corpus(rank, n=160):
    g = torch.Generator().manual_seed(31 + rank)
    src = torch.randint(2, 40, (n, 10), generator=g)
    return src, torch.cat([torch.ones(n, 1, dtype=torch.long), src.flip(1)], 1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=16)
    p.add_argument("--batch", type=int, default=10)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(77)
    model = Seq2Seq()
    for w in model.parameters():
        dist.broadcast(w.data, 0)
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.5), world)
    src, tgt = corpus(rank)
    for step in range(a.steps):
        sl = slice(step * a.batch % 160, step * a.batch % 160 + a.batch)
        loss = trainer.train_step(src[sl], tgt[sl])
        if step % 4 == 0 and rank == 0:
            print(f"step {step} xent {loss:.3f}", flush=True)
    dist.barrier()
    print(f"rank {rank} |w| {sum(w.abs().sum().item() for w in model.parameters()):.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
