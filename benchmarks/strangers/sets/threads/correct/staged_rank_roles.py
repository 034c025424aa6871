"""Accelerate run with a lot of rank-dependent work that needs no company: logging, sampling, a rank-0 preview."""
import collections
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


class Journal:
    """Only the main process keeps one; the others write into nothing."""

    def __init__(self, active):
        self.active, self.rows = active, collections.deque(maxlen=100)

    def write(self, **row):
        if self.active:
            self.rows.append(row)

    def close(self):
        if self.active:
            for row in list(self.rows)[::4]:
                print(" ".join(f"{k}={v}" for k, v in row.items()), flush=True)


class VAE(nn.Module):
    def __init__(self, d=16, z=3):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, 32), nn.ReLU(), nn.Linear(32, d))

    def forward(self, x, noise):
        mu, logvar = self.enc(x).chunk(2, 1)
        return self.dec(mu + noise * (0.5 * logvar).exp()), mu, logvar


def curves(n):
    g = torch.Generator().manual_seed(8)
    t = torch.linspace(0, 6.28, 16)
    a, w, p = torch.rand(3, n, 1, generator=g)
    return TensorDataset((0.5 + a) * torch.sin((1 + w) * t + 6 * p))


def main():
    acc = Accelerator(cpu=True)
    torch.manual_seed(0)
    net = VAE()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    loader = DataLoader(curves(256), batch_size=16, shuffle=True)
    net, opt, loader = acc.prepare(net, opt, loader)
    noise = torch.Generator().manual_seed(4000 + acc.process_index)
    journal = Journal(acc.is_main_process)
    for epoch in range(4):
        for i, (x,) in enumerate(loader):
            eps = torch.randn(len(x), 3, generator=noise)
            out, mu, logvar = net(x, eps)
            kl = 0.5 * (mu.pow(2) + logvar.exp() - logvar - 1).sum(1).mean()
            loss = F.mse_loss(out, x) * 16 + 0.02 * kl
            opt.zero_grad()
            acc.backward(loss)
            opt.step()
            journal.write(epoch=epoch, i=i, loss=f"{loss.item():.3f}")
        if acc.is_main_process:
            bare = acc.unwrap_model(net)
            bare.eval()
            with torch.no_grad():
                shown = bare.dec(torch.zeros(1, 3)).abs().mean()
            bare.train()
            time.sleep(0.2)
            journal.write(epoch=epoch, preview=f"{shown.item():.3f}")
        total = acc.reduce(loss.detach(), reduction="mean")
        if epoch == 3 and acc.is_local_main_process:
            print(f"final loss {total.item():.3f}", flush=True)
    journal.close()
    acc.wait_for_everyone()
    acc.end_training()


if __name__ == "__main__":
    main()
