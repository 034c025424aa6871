"""Translation model without a wrapper: gradients are packed into buffers and averaged by hand."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn


def all_reduce_and_rescale_tensors(tensors, denom, buffer_size=2 ** 20):
    """Packs small tensors into one buffer, large ones go alone."""
    buffer_t = tensors[0].new(buffer_size).zero_()
    buffer, filled = [], 0

    def flush():
        offset = 0
        for t in buffer:
            buffer_t[offset:offset + t.numel()].copy_(t.view(-1))
            offset += t.numel()
        dist.all_reduce(buffer_t[:offset], async_op=True)
        buffer_t.div_(denom)
        offset = 0
        for t in buffer:
            t.view(-1).copy_(buffer_t[offset:offset + t.numel()])
            offset += t.numel()

    for t in tensors:
        if t.numel() > buffer_size:
            dist.all_reduce(t)
            t.div_(denom)
        elif filled + t.numel() > buffer_size:
            flush()
            buffer, filled = [t], t.numel()
        else:
            buffer.append(t)
            filled += t.numel()
    if buffer:
        flush()


class Seq2Seq(nn.Module):
    def __init__(self, vocab=400, dim=160):
        super().__init__()
        self.src = nn.Embedding(vocab, dim)
        self.enc = nn.GRU(dim, dim, batch_first=True)
        self.dec = nn.GRU(dim, dim, batch_first=True)
        self.gen = nn.Linear(dim, vocab)

    def forward(self, src, tgt_in):
        _, h = self.enc(self.src(src))
        return self.gen(self.dec(self.src(tgt_in), h)[0])


class TrainerNMT:
    def __init__(self, model, optim, world):
        self.model, self.optim, self.world = model, optim, world

    def step(self, src, tgt):
        logits = self.model(src, tgt[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten())
        self.optim.zero_grad()
        loss.backward()
        grads = [p.grad for p in self.model.parameters() if p.grad is not None]
        all_reduce_and_rescale_tensors(grads, float(self.world))
        self.optim.step()
        return loss.item()


def pairs(rank, n, vocab=400):
    g = torch.Generator().manual_seed(rank + 1)
    for _ in range(n):
        src = torch.randint(1, vocab, (4, 7), generator=g)
        yield src, torch.cat([torch.zeros(4, 1, dtype=torch.long), src.flip(1)], 1)


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    torch.manual_seed(1234)
    model = Seq2Seq()
    trainer = TrainerNMT(model, torch.optim.Adam(model.parameters(), lr=1e-3), world)
    for i, (src, tgt) in enumerate(pairs(rank, 12)):
        xent = trainer.step(src, tgt)
        if i % 5 == 0:
            print(f"[{rank}] step {i} xent {xent:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
