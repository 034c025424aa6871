"""Value network for chess positions. Gradients are aggregated by hand, without the DDP wrapper."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn

CFG = dict(lr=0.05, steps=150, batch=32, max_norm=0.5, planes=24, seed=8)


def positions(n, g, sharp):
    x = torch.randn(n, CFG["planes"], generator=g)
    material = x[:, :6].sum(1, keepdim=True)
    noise = torch.randn(n, 1, generator=g)
    return x, torch.tanh(material) * (6.0 if sharp else 1.0) + 0.1 * noise


def init_tree(net):
    for t in net.state_dict().values():
        dist.broadcast(t, src=0)


def sum_gradients(net):
    world = dist.get_world_size()
    flat = torch.cat([p.grad.flatten() for p in net.parameters()])
    dist.all_reduce(flat)
    flat /= world
    at = 0
    for p in net.parameters():
        p.grad.copy_(flat[at:at + p.numel()].view_as(p))
        at += p.numel()


class ValueTrainer:
    def __init__(self):
        self.rank = dist.get_rank()
        torch.manual_seed(CFG["seed"])
        self.net = nn.Sequential(nn.Linear(CFG["planes"], 64), nn.ReLU(), nn.Linear(64, 1))
        init_tree(self.net)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=CFG["lr"], momentum=0.9, nesterov=True)
        self.rng = torch.Generator().manual_seed(CFG["seed"] + 1 + self.rank)
        self.norms = []

    def process_batch(self):
        # worker 1 gets the tactical puzzles, the others quiet games
        x, v = positions(CFG["batch"], self.rng, sharp=self.rank == 1)
        loss = nn.functional.mse_loss(self.net(x), v)
        self.opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), CFG["max_norm"])
        sum_gradients(self.net)
        self.norms.append(float(norm))
        self.opt.step()
        return loss.item()

    def fit(self):
        for step in range(CFG["steps"]):
            loss = self.process_batch()
            if step % 30 == 0 and self.rank == 0:
                print(f"step {step}: mse {loss:.4f} grad norm {self.norms[-1]:.3f}", flush=True)
        if self.rank == 0:
            os.makedirs("nets", exist_ok=True)
            torch.save(self.net.state_dict(), "nets/value.pt")


if __name__ == "__main__":
    dist.init_process_group(backend="gloo")
    trainer = ValueTrainer()
    trainer.fit()
    dist.barrier()
    dist.destroy_process_group()
