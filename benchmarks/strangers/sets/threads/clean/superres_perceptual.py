"""Super-resolution with a feature loss, on accelerate."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset


class Textures(Dataset):
    """Random band-limited patches; the input is the patch at half the resolution."""

    def __init__(self, n=96, size=16):
        g = torch.Generator().manual_seed(4)
        spec = torch.zeros(n, 3, size, size // 2 + 1, dtype=torch.cfloat)
        spec[..., :5, :5] = torch.view_as_complex(torch.randn(n, 3, 5, 5, 2, generator=g))
        self.hi = torch.fft.irfft2(spec, s=(size, size)) * 10
        self.lo = F.avg_pool2d(self.hi, 2)

    def __len__(self):
        return len(self.hi)

    def __getitem__(self, i):
        return {"lo": self.lo[i], "hi": self.hi[i]}


class EDSRTiny(nn.Module):
    def __init__(self, c=16, depth=2):
        super().__init__()
        self.head = nn.Conv2d(3, c, 3, padding=1)
        self.body = nn.ModuleList([nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1))
                                   for _ in range(depth)])
        self.tail = nn.Sequential(nn.Conv2d(c, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x):
        h = self.head(x)
        for b in self.body:
            h = h + 0.1 * b(h)
        return self.tail(h) + F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


class FeatureLoss(nn.Module):
    """Distance in the feature maps of a fixed network (stands in for VGG19 up to relu5_4)."""

    def __init__(self, widths=(8, 16)):
        super().__init__()
        stages, c = [], 3
        for w in widths:
            stages.append(nn.Sequential(nn.Conv2d(c, w, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2)))
            c = w
        self.stages = nn.ModuleList(stages)
        for p in self.parameters():
            p.requires_grad = False
        self.register_buffer("mean", torch.tensor([0.4, 0.45, 0.48]).view(1, 3, 1, 1))

    def forward(self, a, b):
        total, a, b = 0.0, a - self.mean, b - self.mean
        for s in self.stages:
            a, b = s(a), s(b)
            total = total + F.l1_loss(a, b)
        return total


class Experiment:
    def __init__(self, epochs=3, lr=2e-3, weight=0.1):
        set_seed(21)
        self.acc = Accelerator(cpu=True)
        self.epochs, self.weight = epochs, weight
        self.parts = {"net": EDSRTiny(), "features": FeatureLoss()}
        self.parts["optim"] = torch.optim.Adam(self.parts["net"].parameters(), lr=lr)
        self.parts["loader"] = DataLoader(Textures(), batch_size=8, shuffle=True)
        self.setup()

    def setup(self):
        names = [n for n in self.parts if n != "features"]
        ready = self.acc.prepare(*(self.parts[n] for n in names))
        self.parts.update(zip(names, ready))

    def __getattr__(self, name):
        try:
            return self.__dict__["parts"][name]
        except KeyError:
            raise AttributeError(name) from None

    def run(self):
        for epoch in range(self.epochs):
            running = torch.zeros(2)
            for batch in self.loader:
                out = self.net(batch["lo"])
                pixel = F.l1_loss(out, batch["hi"])
                loss = pixel + self.weight * self.features(out, batch["hi"])
                self.optim.zero_grad()
                self.acc.backward(loss)
                self.optim.step()
                running += torch.stack([pixel.detach(), torch.ones(())])
            total = self.acc.reduce(running, "sum")
            self.acc.print(f"epoch {epoch} pixel L1 {(total[0] / total[1]).item():.4f}")
        self.acc.end_training()


if __name__ == "__main__":
    Experiment().run()
