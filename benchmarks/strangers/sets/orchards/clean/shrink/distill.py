"""Teacher trained on one process (replicated), student trained sharded on its soft labels."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import factory
import sharding

TEACHER = dict(seed=1, d_in=20, width=64, depth=2, classes=5)
STUDENT = dict(seed=2, d_in=20, width=24, depth=2, classes=5)
EPOCHS, BATCH, TEMP = 4, 32, 2.0


def blobs(n, seed):
    centres = torch.randn(5, 20, generator=torch.Generator().manual_seed(99)) * 1.2
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(5, (n,), generator=g)
    return centres[y] + torch.randn(n, 20, generator=g), y


def fit_teacher():
    net = factory.make_net(TEACHER)
    opt = factory.make_optimizer(net, 2e-3, 0.01)
    x, y = blobs(1024, 0)
    for i in range(80):
        j = slice((i * 64) % 1024, (i * 64) % 1024 + 64)
        loss = F.cross_entropy(net(x[j]), y[j])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return net.eval().requires_grad_(False)


def soft_loss(s, t):
    return F.kl_div(F.log_softmax(s / TEMP, 1), F.softmax(t / TEMP, 1), reduction="batchmean") * TEMP ** 2


@torch.no_grad()
def agreement(student, teacher, x):
    r, w = dist.get_rank(), dist.get_world_size()
    part = x[r::w]
    t = torch.tensor([(student(part).argmax(1) == teacher(part).argmax(1)).sum().item(), len(part)])
    dist.all_reduce(t)
    return (t[0] / t[1]).item()


def main():
    mesh = sharding.start()
    teacher = fit_teacher()
    x, _ = blobs(2048, 5)
    ds = TensorDataset(x)
    sampler = DistributedSampler(ds, drop_last=True)
    loader = DataLoader(ds, BATCH, sampler=sampler)
    student, opt, sched = factory.make_student(STUDENT, 4e-3, 0.01, EPOCHS * len(loader),
                                               lambda net: sharding.shard_(net, mesh))
    held, _ = blobs(512, 6)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for (xb,) in loader:
            loss = soft_loss(student(xb), teacher(xb))
            loss.backward()
            opt.step()
            sched.step()
            opt.zero_grad()
        a = agreement(student, teacher, held)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} kd {loss.item():.4f} agreement {a:.3f} lr {sched.get_last_lr()[0]:.2e}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
