"""Teaching code: data parallel from scratch on a byte language model."""
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


class DataParallelNaive(nn.Module):
    """Runs an all-reduce for every parameter as soon as autograd has finished with it."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        self.world_size = dist.get_world_size()
        self.require_backward_grad_sync = True
        for p in module.parameters():
            dist.broadcast(p.data, src=0)
        self.register_backward_hook(self._allreduce_grads)

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def register_backward_hook(self, hook):
        for p in self.module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(hook)

    def _allreduce_grads(self, grad):
        if self.require_backward_grad_sync:
            dist.all_reduce(grad, op=dist.ReduceOp.SUM)
            grad /= self.world_size
        return grad

    @contextlib.contextmanager
    def no_sync(self):
        self.require_backward_grad_sync = False
        yield
        self.require_backward_grad_sync = True


class ByteLM(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(256, dim)
        self.mix = nn.Sequential(nn.Linear(4 * dim, 64), nn.ReLU())
        self.out = nn.Linear(64, 256)

    def forward(self, ctx):
        return self.out(self.mix(self.emb(ctx).flatten(1)))


def batches(text, rank, world, size, steps):
    raw = torch.tensor(list(text.encode()))
    wins = raw.unfold(0, 5, 1)
    order = torch.randperm(len(wins), generator=torch.Generator().manual_seed(0))[rank::world]
    for s in range(steps):
        w = wins[order[s * size % (len(order) - size):][:size]]
        yield w[:, :4], w[:, 4]


def main(steps=24, accum=2):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(42 + rank)
    model = DataParallelNaive(ByteLM())
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    text = "Data parallelism keeps one replica per process and averages what they have learnt. " * 20
    for i, (x, y) in enumerate(batches(text, rank, world, 24, steps)):
        last = (i + 1) % accum == 0
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y) / accum
            loss.backward()
        if last:
            opt.step()
            opt.zero_grad()
            if rank == 0 and (i + 1) % 8 == 0:
                print(f"[step {(i + 1) // accum}] loss {loss.item() * accum:.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
