"""Small image classifier with a searched augmentation policy; one process per device by mp.spawn."""
import os
import random

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class SubPolicy:
    """Two operations, each with a probability and a strength."""

    def __init__(self, *ops):
        self.ops = ops
        self.table = {
            "shift": lambda im, m: torch.roll(im, int(m), dims=-1),
            "flip": lambda im, m: im.flip(-1),
            "bright": lambda im, m: im * (1 + 0.1 * m),
            "noise": lambda im, m: im + 0.05 * m * torch.randn_like(im),
        }

    def __call__(self, im):
        for name, p, m in self.ops:
            if random.random() < p:
                im = self.table[name](im, m)
        return im


class Policy:
    def __init__(self, subs):
        self.subs = subs

    def __call__(self, im):
        return random.choice(self.subs)(im)


CIFAR_POLICY = [
    (("shift", 0.6, 2), ("bright", 0.3, 2)),
    (("flip", 0.5, 0), ("noise", 0.4, 3)),
    (("noise", 0.7, 1), ("bright", 0.8, 4)),
]


class Stripes(Dataset):
    def __init__(self, n, transform=None):
        g = torch.Generator().manual_seed(17)
        self.y = torch.randint(0, 3, (n,), generator=g)
        phase = torch.arange(16.0)
        wave = torch.sin(phase[None] * (self.y[:, None] + 1) * 0.7)
        self.x = wave[:, None, None, :].expand(n, 1, 16, 16) + 0.3 * torch.randn(n, 1, 16, 16, generator=g)
        self.transform = transform

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        return (self.transform(x) if self.transform else x), self.y[i]


def network():
    return nn.Sequential(nn.Conv2d(1, 12, 5, 2), nn.ReLU(), nn.Conv2d(12, 12, 3), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(48, 3))


def main_worker(gpu, ngpus, args, dataset):
    dist.init_process_group("gloo", init_method=args["dist_url"], rank=gpu, world_size=ngpus)
    torch.manual_seed(args["seed"])
    random.seed(args["seed"] + gpu)
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), args["lr"], momentum=0.9)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=args["batch_size"] // ngpus, sampler=sampler)
    for epoch in range(args["epochs"]):
        sampler.set_epoch(epoch)
        stats = torch.zeros(2)
        for x, y in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            stats += torch.tensor([(out.argmax(1) == y).sum().item(), len(y)])
        dist.all_reduce(stats)
        if gpu == 0:
            print(f"epoch {epoch} acc {(stats[0] / stats[1]).item():.3f}", flush=True)
    del model
    dist.destroy_process_group()


def main():
    rendezvous = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"rdzv_{os.getpid()}")
    args = dict(dist_url=f"file://{rendezvous}", seed=2, lr=0.02, batch_size=32, epochs=3, ngpus=2)
    transform = Policy([SubPolicy(*s) for s in CIFAR_POLICY])
    dataset = Stripes(192, transform)
    mp.spawn(main_worker, nprocs=args["ngpus"], args=(args["ngpus"], args, dataset))


if __name__ == "__main__":
    main()
