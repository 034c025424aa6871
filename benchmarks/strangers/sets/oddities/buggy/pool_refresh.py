# Active learning on a small text-intent pool: every few rounds the hardest examples are drawn anew.
import argparse
import functools

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main_process_only(default=None):
    """Decorator: run the function on the main process, give `default(self)` elsewhere."""
    def wrap(fn):
        @functools.wraps(fn)
        def inner(self, *a, **k):
            if dist.get_rank() == 0:
                return fn(self, *a, **k)
            return default(self) if default is not None else None
        return inner
    return wrap


class IntentPool:
    def __init__(self, n=400, vocab=60, seq=10, intents=5):
        g = torch.Generator().manual_seed(13)
        self.y = torch.randint(0, intents, (n,), generator=g)
        self.x = torch.randint(0, vocab, (n, seq), generator=g)
        hint = torch.rand(n, generator=g) < 0.8
        self.x[hint, 0] = self.y[hint]
        self.active = list(range(64))

    def shard(self):
        return self.active[dist.get_rank()::dist.get_world_size()]


class Learner:
    def __init__(self, args):
        self.args = args
        torch.manual_seed(2)
        self.pool = IntentPool()
        net = nn.Sequential(nn.EmbeddingBag(60, 16), nn.ReLU(), nn.Linear(16, 5))
        self.net = DDP(net)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=args.lr)

    @main_process_only()
    def announce(self, text):
        print(text, flush=True)

    @main_process_only(default=lambda self: self.pool.active)
    def draw(self):
        with torch.no_grad():
            logits = self.net.module(self.pool.x)
            hard = nn.functional.cross_entropy(logits, self.pool.y, reduction="none")
        picked = [hard.topk(self.args.pick).indices.tolist()]
        dist.broadcast_object_list(picked, src=0)
        return picked[0]

    def round(self, k):
        if k and k % self.args.every == 0:
            self.pool.active = self.draw()
        mine = torch.tensor(self.pool.shard())
        last = None
        for idx in mine.split(self.args.batch):
            last = nn.functional.cross_entropy(self.net(self.pool.x[idx]), self.pool.y[idx])
            self.opt.zero_grad()
            last.backward()
            self.opt.step()
        self.announce(f"round {k}: loss {last.item():.3f} active {len(self.pool.active)}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--rounds", type=int, default=6)
    ap.add_argument("--every", type=int, default=2)
    ap.add_argument("--pick", type=int, default=64)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args()
    dist.init_process_group(backend="gloo")
    learner = Learner(args)
    for k in range(args.rounds):
        learner.round(k)
    dist.destroy_process_group()
