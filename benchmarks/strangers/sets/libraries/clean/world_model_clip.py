"""Latent world model: hooks in the style of a light trainer, mixture of two experts in the dynamics."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


class Dynamics(nn.Module):
    def __init__(self, state=12, action=3, width=32, experts=2):
        super().__init__()
        self.router = nn.Linear(state + action, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(state + action, width), nn.ELU(), nn.Linear(width, state)) for _ in range(experts))

    def forward(self, s, a):
        x = torch.cat([s, a], 1)
        weight = self.router(x).softmax(-1)
        return s + sum(weight[:, i:i + 1] * e(x) for i, e in enumerate(self.experts))


class Hooks:
    def on_before_backward(self, loss):
        return loss

    def on_after_backward(self):
        pass

    def on_before_step(self):
        pass


class ClipMixin(Hooks):
    max_norm = 0.5

    def clip(self):
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), self.max_norm)
        self.norms.append(norm.item())

    def on_before_step(self):
        self.clip()


class WorldModelModule(ClipMixin):
    def __init__(self, accumulate):
        torch.manual_seed(23)
        self.net = DistributedDataParallel(Dynamics())
        self.optim = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.accumulate = accumulate
        self.norms = []

    def training_step(self, batch):
        s, a, nxt = batch
        return nn.functional.mse_loss(self.net(s, a), nxt) / self.accumulate

    def micro_step(self, batch):
        loss = self.on_before_backward(self.training_step(batch))
        loss.backward()
        self.on_after_backward()
        return loss.item()

    def fit(self, batches):
        window = []
        for batch in batches:
            window.append(batch)
            if len(window) < self.accumulate:
                continue
            with self.net.no_sync():
                for held in window[:-1]:
                    self.micro_step(held)
            last = self.micro_step(window[-1])
            self.on_before_step()
            self.optim.step()
            self.optim.zero_grad()
            window = []
        return last


def transitions(rank, n):
    g = torch.Generator().manual_seed(410 + rank)
    spread = 1.0 + 4.0 * rank
    rule = torch.randn(15, 12, generator=torch.Generator().manual_seed(1)) / 4
    for _ in range(n):
        s = spread * torch.randn(8, 12, generator=g)
        a = torch.randn(8, 3, generator=g)
        yield s, a, s + torch.tanh(torch.cat([s, a], 1) @ rule) * spread


def main():
    module = WorldModelModule(accumulate=4)
    last = module.fit(transitions(dist.get_rank(), 32))
    print(f"rank {dist.get_rank()}: own last loss {last:.4f}, first norms {[round(n, 2) for n in module.norms[:4]]}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.barrier()
    dist.destroy_process_group()
