"""Which reply was accepted?  Gradient averaging by hand, no wrapper (old cluster, small model)."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F


class Ranker(nn.Module):
    def __init__(self, vocab=200, dim=24):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim)
        self.mlp = nn.Sequential(nn.Linear(2 * dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, q, replies):
        b, k, n = replies.shape
        qv = self.bag(q).unsqueeze(1).expand(-1, k, -1)
        rv = self.bag(replies.view(b * k, n)).view(b, k, -1)
        return self.mlp(torch.cat([qv * rv, rv], -1)).squeeze(-1)


def threads(rank, step, b=16, k=4, n=10, vocab=200):
    g = torch.Generator().manual_seed(rank * 100003 + step)
    q = torch.randint(0, vocab, (b, n), generator=g)
    replies = torch.randint(0, vocab, (b, k, n), generator=g)
    best = torch.randint(0, k, (b,), generator=g)
    replies[torch.arange(b), best, :6] = q[:, :6]
    return q, replies, best


class Reducer:
    def __init__(self, net, pieces):
        self.params = [p for p in net.parameters() if p.requires_grad]
        self.pieces = pieces
        self.world = dist.get_world_size()

    def start(self):
        for p in self.params:
            dist.broadcast(p.data, src=0)

    def after_backward(self):
        for p in self.params:
            dist.all_reduce(p.grad)

    def before_step(self):
        for p in self.params:
            p.grad /= self.world * self.pieces


def clip(params, limit):
    return nn.utils.clip_grad_norm_(params, limit)


def work(rank, a):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(a.port)
    dist.init_process_group("gloo", rank=rank, world_size=a.world)
    torch.manual_seed(rank)
    net = Ranker()
    red = Reducer(net, a.pieces)
    red.start()
    opt = torch.optim.SGD(net.parameters(), lr=a.lr, momentum=0.9)
    micro = 0
    for step in range(a.steps):
        opt.zero_grad()
        loss_sum, right = 0.0, 0
        for _ in range(a.pieces):
            q, replies, best = threads(rank, micro)
            micro += 1
            score = net(q, replies)
            loss = F.cross_entropy(score, best)
            loss.backward()
            red.after_backward()
            loss_sum += loss.item() / a.pieces
            right += (score.argmax(1) == best).sum().item()
        red.before_step()
        clip(net.parameters(), 5.0)
        opt.step()
        if step % 20 == 19:
            log = torch.tensor([loss_sum, right / (16 * a.pieces)])
            dist.all_reduce(log)
            if rank == 0:
                print(f"step {step + 1} loss {log[0] / a.world:.4f} acc {log[1] / a.world:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--world", type=int, default=2)
    p.add_argument("--port", type=int, default=29691)
    p.add_argument("--steps", type=int, default=80)
    p.add_argument("--pieces", type=int, default=3)
    p.add_argument("--lr", type=float, default=0.3)
    a = p.parse_args()
    mp.spawn(work, args=(a,), nprocs=a.world)
