"""Distillation from two teachers; the weight of a teacher follows from how well it does on the batch."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, o))


class Blobs:
    """Ranks read different shards, and the classes are not spread evenly over the shards."""

    def __init__(self, rank, world, classes=6, dim=10):
        g = torch.Generator().manual_seed(0)
        self.means = torch.randn(classes, dim, generator=g) * 1.5
        self.own = torch.arange(classes).chunk(world)[rank]
        self.all = torch.arange(classes)
        self.g = torch.Generator().manual_seed(rank + 1)

    def sample(self, n, pool):
        y = pool[torch.randint(len(pool), (n,), generator=self.g)]
        return self.means[y] + torch.randn(n, self.means.shape[1], generator=self.g), y

    def batch(self, n=32):
        return self.sample(n, self.own)


def pretrain_teacher(classes_seen, means):
    g = torch.Generator().manual_seed(int(classes_seen[0]) + 5)
    net = mlp(10, 32, 6)
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(150):
        y = classes_seen[torch.randint(len(classes_seen), (64,), generator=g)]
        loss = F.cross_entropy(net(means[y] + torch.randn(64, 10, generator=g)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return net.eval().requires_grad_(False)


class MultiTeacherKD(nn.Module):
    def __init__(self, teachers, tau=2.0):
        super().__init__()
        self.teachers, self.tau = teachers, tau
        self.last_weights = None

    def score(self, logits, labels):
        ce = F.cross_entropy(logits, labels)
        return -ce

    def forward(self, student_logits, x, labels):
        outs = [t(x) for t in self.teachers]
        self.last_weights = torch.stack([self.score(o, labels) for o in outs]).softmax(0)
        total = 0.0
        for w, o in zip(self.last_weights, outs):
            kd = F.kl_div(F.log_softmax(student_logits / self.tau, 1), F.softmax(o / self.tau, 1), reduction="batchmean")
            total = total + w * kd * self.tau ** 2
        return total


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    data = Blobs(rank, world)
    teachers = [pretrain_teacher(c, data.means) for c in (torch.arange(0, 4), torch.arange(2, 6))]
    student = DDP(mlp(10, 24, 6))
    kd = MultiTeacherKD(teachers)
    opt = torch.optim.Adam(student.parameters(), lr=5e-3)
    for step in range(60):
        x, y = data.batch()
        loss = kd(student(x), x, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 20 == 19:
            print(f"step {step + 1} kd {loss.item():.4f} weights {[round(w, 3) for w in kd.last_weights.tolist()]}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
