"""Local SGD: replicas drift on purpose and are averaged every H steps and before evaluation."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

H, EPOCHS, BATCH, LR = 8, 6, 24, 0.1


class Averager:
    def __init__(self, net, every):
        self.net, self.every, self.k = net, every, 0
        self.drift = 0.0

    @torch.no_grad()
    def now(self):
        world = dist.get_world_size()
        before = nn.utils.parameters_to_vector(self.net.parameters())
        mean = before.clone()
        dist.all_reduce(mean)
        mean /= world
        self.drift = (before - mean).norm().item()
        nn.utils.vector_to_parameters(mean, self.net.parameters())

    def step(self):
        self.k += 1
        if self.k % self.every == 0:
            self.now()


def digits():
    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x / 16, dtype=torch.float32)
    y = torch.tensor(y)
    return TensorDataset(x[:1440], y[:1440]), (x[1440:], y[1440:])


def build():
    torch.manual_seed(77)
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10))


def jitter(x, gen):
    return x + 0.1 * torch.randn(x.shape, generator=gen)


@torch.no_grad()
def accuracy(net, x, y):
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = slice(rank, None, world)
    pair = torch.stack([(net(x[mine]).argmax(1) == y[mine]).sum(), torch.tensor(len(y[mine]))])
    dist.all_reduce(pair)
    return pair[0].item() / pair[1].item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    train, (xt, yt) = digits()
    sampler = DistributedSampler(train, seed=1, drop_last=True)
    loader = DataLoader(train, BATCH, sampler=sampler)
    net = build()
    opt = torch.optim.SGD(net.parameters(), lr=LR)
    avg = Averager(net, H)
    noise = torch.Generator().manual_seed(900 + rank)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = F.cross_entropy(net(jitter(x, noise)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            avg.step()
        avg.now()
        acc = accuracy(net, xt, yt)
        if rank == 0:
            print(f"epoch {epoch} accuracy {acc:.3f} last drift {avg.drift:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
