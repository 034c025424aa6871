"""Language model with a budget of seconds: clocks differ, so the ranks vote every few steps and stop together."""
import argparse
import signal
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Budget:
    """True on all ranks as soon as any has used its seconds or was told to end."""

    def __init__(self, seconds, every):
        self.end, self.every, self.told, self.calls = time.monotonic() + seconds, every, False, 0
        signal.signal(signal.SIGUSR1, self._on_signal)

    def _on_signal(self, *_):
        self.told = True

    def spent(self):
        self.calls += 1
        if self.calls % self.every:
            return False
        mine = torch.tensor(float(self.told or time.monotonic() > self.end))
        dist.all_reduce(mine, op=dist.ReduceOp.MAX)
        return bool(mine)


def text(rank, n=20000):
    g = torch.Generator().manual_seed(9)
    nxt = torch.randint(0, 30, (30, 2), generator=g)
    g.manual_seed(rank + 1)
    coin, out, s = torch.randint(0, 2, (n,), generator=g).tolist(), [], 0
    for c in coin:
        s = int(nxt[s, c])
        out.append(s)
    return torch.tensor(out)


class TinyLM(nn.Module):
    def __init__(self, vocab=30, dim=24):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(vocab, dim), nn.GRU(dim, dim, batch_first=True), nn.Linear(dim, vocab)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=2.0)
    p.add_argument("--max-steps", type=int, default=4000)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DDP(TinyLM())
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
    data, g = text(rank), torch.Generator().manual_seed(rank)
    budget, step, loss = Budget(args.seconds, every=10), 0, torch.zeros(())
    while step < args.max_steps and not budget.spent():
        at = torch.randint(0, len(data) - 17, (16,), generator=g)
        rows = torch.stack([data[i:i + 17] for i in at])
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
    final = loss.detach().clone()
    dist.all_reduce(final)
    steps = [None] * dist.get_world_size()
    dist.all_gather_object(steps, step)
    if rank == 0:
        print(f"stopped at {steps} with loss {final.item() / len(steps):.3f}", flush=True)
    assert len(set(steps)) == 1
    del model, opt
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
