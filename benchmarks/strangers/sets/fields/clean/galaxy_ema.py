"""Galaxy morphology with a slow copy of the weights that is fed back into the student now and then."""
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class SlowCopy:
    def __init__(self, online, beta=0.95, feed_back_every=10):
        self.online = online
        self.shadow = copy.deepcopy(online).requires_grad_(False)
        self.beta, self.every, self.count = beta, feed_back_every, 0

    @torch.no_grad()
    def update(self):
        self.count += 1
        for s, p in zip(self.shadow.parameters(), self.online.parameters()):
            s.lerp_(p, 1 - self.beta)
        if self.count % self.every == 0:
            for s, p in zip(self.shadow.parameters(), self.online.parameters()):
                p.copy_(s)


def galaxies(n=384, size=12):
    g = torch.Generator().manual_seed(8)
    label = torch.randint(0, 3, (n,), generator=g)
    r = torch.linspace(-1, 1, size).pow(2)
    blob = torch.exp(-3 * (r[:, None] * torch.tensor([1.0, 3.0, 9.0])[label].view(-1, 1, 1) + r[None, :]))
    return TensorDataset(blob.unsqueeze(1) + 0.4 * torch.randn(n, 1, size, size, generator=g), label)


def network():
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(800, 3))


def fit(epochs=4):
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = galaxies()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    student = DDP(network())
    slow = SlowCopy(student.module)
    opt = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        hits = 0
        for img, label in loader:
            logits = student(img)
            loss = nn.functional.cross_entropy(logits, label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            slow.update()
            hits += (logits.argmax(-1) == label).sum().item()
        score = torch.tensor([hits, len(sampler)])
        dist.all_reduce(score)
        if rank == 0:
            print(f"epoch {epoch} train accuracy {score[0].item() / score[1].item():.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    fit()
    dist.destroy_process_group()
