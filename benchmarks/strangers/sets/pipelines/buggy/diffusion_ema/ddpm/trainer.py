import torch
from torch.nn.parallel import DistributedDataParallel

from .dist_util import all_reduce_mean, get_rank, is_main_process


def sample(n, seed):
    g = torch.Generator().manual_seed(seed)
    x0 = torch.randn(n, 1, generator=g) * torch.ones(6)
    t = torch.rand(n, generator=g)
    eps = torch.randn(n, 6, generator=g)
    return x0 * (1 - t[:, None]) + eps * t[:, None], t, eps


class Trainer:
    def __init__(self, net, ema, steps, lr):
        self.model = DistributedDataParallel(net)
        self.ema, self.steps = ema, steps
        self.opt = torch.optim.Adam(net.parameters(), lr=lr)

    def loss(self, net, batch):
        xt, t, eps = batch
        return (net(xt, t) - eps).pow(2).mean()

    def train(self):
        for step in range(self.steps):
            loss = self.loss(self.model, sample(32, 1000 * step + get_rank()))
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.ema.update()
        val = self.validate()
        if is_main_process():
            print(f"final train {loss.item():.4f} ema val {val:.4f}", flush=True)

    @torch.no_grad()
    def validate(self):
        return all_reduce_mean(self.loss(self.ema.ema_model, sample(256, 77 + get_rank()))).item()
