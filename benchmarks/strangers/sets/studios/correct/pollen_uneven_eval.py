"""Pollen types: uneven test shards, exact metrics; old checkpoint with wrapped keys."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def grains(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    c = torch.randn(4, 8, generator=torch.Generator().manual_seed(1))
    return c[y] + 0.8 * torch.randn(n, 8, generator=g), y


def gather_rows(t):
    """Pad to the longest, gather, cut again. Every process takes part, also with zero rows."""
    world = dist.get_world_size()
    sizes = [torch.zeros(1, dtype=torch.long) for _ in range(world)]
    dist.all_gather(sizes, torch.tensor([len(t)]))
    longest = max(int(s) for s in sizes)
    padded = torch.cat([t, t.new_zeros(longest - len(t), *t.shape[1:])])
    parts = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(parts, padded)
    return torch.cat([p[:int(s)] for p, s in zip(parts, sizes)])


def old_checkpoint(path):
    torch.manual_seed(3)
    torch.save({"module." + k: v for k, v in model().state_dict().items()}, path)


def model():
    return nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 4))


def macro_f1(pred, true):
    f = []
    for c in range(4):
        tp = ((pred == c) & (true == c)).sum().item()
        f.append(2 * tp / max(1, (pred == c).sum().item() + (true == c).sum().item()))
    return sum(f) / 4


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    where = [None]
    if rank == 0:
        where = [os.path.join(tempfile.mkdtemp(), "old.pt")]
        old_checkpoint(where[0])
    dist.broadcast_object_list(where, src=0)
    ddp = DDP(model())
    print(rank, ddp.load_state_dict(torch.load(where[0])), flush=True)
    x, y = grains(400, 5)
    x, y = x[rank::world], y[rank::world]
    tx, ty = grains(131, 6)
    mine = slice(0, 97) if rank == 0 else slice(97, None)
    opt = torch.optim.Adam(ddp.parameters(), lr=1e-2)
    for epoch in range(4):
        for b in torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch)).split(25):
            opt.zero_grad()
            nn.functional.cross_entropy(ddp(x[b]), y[b]).backward()
            opt.step()
        with torch.no_grad():
            pred = ddp.module(tx[mine]).argmax(1)
        rows = gather_rows(torch.stack([pred, ty[mine]], 1))
        wrong = gather_rows(torch.arange(131)[mine][pred != ty[mine]] * (epoch > 1))
        if rank == 0:
            print(f"epoch {epoch} f1 {macro_f1(*rows.unbind(1)):.4f} of {len(rows)}, {len(wrong)} wrong", flush=True)
    if rank == 0:
        os.remove(where[0])
        os.rmdir(os.path.dirname(where[0]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
