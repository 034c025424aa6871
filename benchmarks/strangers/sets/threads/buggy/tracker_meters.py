"""Siamese tracker on accelerate with the usual pile of running meters."""
import collections

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader, IterableDataset

SETTINGS = {"template": 12, "search": 36, "channels": 16, "batch": 8, "iters": 80, "print_interval": 20, "lr": 1e-3}


class StatValue:
    def __init__(self):
        self.val, self.history = 0, []

    def reset(self):
        self.val = 0

    def update(self, val):
        self.val = val
        self.history.append(self.val)


class AverageMeter(StatValue):
    def __init__(self):
        super().__init__()
        self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum = self.sum + val * n
        self.count += n
        self.avg = self.sum / self.count


class Sequences(IterableDataset):
    def __init__(self, settings, seed):
        self.s, self.seed = settings, seed

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        t, s = self.s["template"], self.s["search"]
        for _ in range(self.s["iters"] * self.s["batch"] * 2):
            z = torch.randn(3, t, t, generator=g)
            x = 0.5 * torch.randn(3, s, s, generator=g)
            dy, dx = torch.randint(0, s - t + 1, (2,), generator=g).tolist()
            x[:, dy:dy + t, dx:dx + t] += z
            yield z, x, torch.tensor([dy, dx])


class SiamFC(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1))
        self.gain = nn.Parameter(torch.tensor(0.01))

    def forward(self, z, x):
        fz, fx = self.features(z), self.features(x)
        b, c, h, w = fx.shape
        r = F.conv2d(fx.reshape(1, b * c, h, w), fz, groups=b)
        return self.gain * r.transpose(0, 1), fx


class Actor:
    def __init__(self, net):
        self.net = net

    def __call__(self, z, x, place):
        r, fx = self.net(z, x)
        r = r.flatten(1)
        side = int(r.size(1) ** 0.5)
        goal = place[:, 0] * side + place[:, 1]
        loss = F.cross_entropy(r, goal)
        far = (r.argmax(1) != goal).float().mean()
        return loss, {"Loss/total": loss, "Stats/miss": far, "Stats/energy": fx.pow(2).mean()}


class LTRTrainer:
    def __init__(self, settings):
        self.settings = settings
        self.acc = Accelerator(cpu=True)
        torch.manual_seed(14)
        net = SiamFC(settings["channels"])
        opt = torch.optim.Adam(net.parameters(), lr=settings["lr"])
        data = DataLoader(Sequences(settings, 3), batch_size=settings["batch"])
        net, self.opt, self.data = self.acc.prepare(net, opt, data)
        self.actor = Actor(net)
        self.stats = collections.OrderedDict()

    def _update_stats(self, new, n):
        for name, val in new.items():
            self.stats.setdefault(name, AverageMeter()).update(val, n)

    def _print_stats(self, i):
        if (i + 1) % self.settings["print_interval"] == 0:
            line = ", ".join(f"{k}: {float(m.avg):.4f}" for k, m in self.stats.items())
            self.acc.print(f"[train: {i + 1}/{self.settings['iters']}] {line}")

    def cycle(self):
        for i, batch in enumerate(self.data):
            loss, stats = self.actor(*batch)
            self.opt.zero_grad()
            self.acc.backward(loss)
            self.opt.step()
            self._update_stats(stats, len(batch[0]))
            self._print_stats(i)


if __name__ == "__main__":
    trainer = LTRTrainer(SETTINGS)
    trainer.cycle()
    trainer.acc.end_training()
