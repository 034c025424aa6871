"""Few-shot learning: the head adapts in the inner loop, features and initial head in the outer loop."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

WAYS, SHOTS, QUERIES, DIM = 4, 3, 5, 10
INNER_LR, OUTER_LR, ADAPT_STEPS = 0.4, 0.05, 3


class MetaNet(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(DIM, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.head = nn.Parameter(torch.zeros(hidden, WAYS))

    def forward(self, x):
        return self.features(x), self.head * 1.0


class TaskStream:
    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.basis = torch.randn(3, DIM, generator=torch.Generator().manual_seed(0))

    def sample(self):
        centers = torch.randn(WAYS, 3, generator=self.gen) @ self.basis
        y = torch.arange(WAYS).repeat_interleave(SHOTS + QUERIES)
        x = centers[y] + 1.2 * torch.randn(len(y), DIM, generator=self.gen)
        is_support = (torch.arange(len(y)) % (SHOTS + QUERIES)) < SHOTS
        return x, y, is_support


def fast_adapt(feats, y, head):
    for _ in range(ADAPT_STEPS):
        inner = F.cross_entropy(feats @ head, y)
        (g,) = torch.autograd.grad(inner, head, create_graph=True)
        head = head - INNER_LR * g
    return head


def meta_loss(model, tasks, meta_batch):
    drawn = [tasks.sample() for _ in range(meta_batch)]
    feats, head = model(torch.stack([x for x, _, _ in drawn]))
    loss, hits, total = 0.0, 0, 0
    for f, (_, y, support) in zip(feats, drawn):
        adapted = fast_adapt(f[support], y[support], head)
        logits = f[~support] @ adapted
        loss = loss + F.cross_entropy(logits, y[~support]) / meta_batch
        hits += (logits.argmax(1) == y[~support]).sum().item()
        total += len(logits)
    return loss, hits, total


def outer_step(model, loss, velocity, momentum=0.9):
    params = [p for p in model.parameters() if p.requires_grad]
    for p in params:
        p.grad = None
    loss.backward()
    grads = [p.grad for p in params]
    with torch.no_grad():
        for p, g, v in zip(params, grads, velocity):
            v.mul_(momentum).add_(g)
            p.sub_(OUTER_LR * v)


def train(iterations=40, meta_batch=4):
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(MetaNet())
    velocity = [torch.zeros_like(p) for p in model.parameters()]
    tasks = TaskStream(seed=500 + rank)
    for it in range(iterations):
        loss, hits, total = meta_loss(model, tasks, meta_batch)
        outer_step(model, loss, velocity)
        if it % 10 == 9:
            counts = torch.tensor([hits, total], dtype=torch.float)
            dist.all_reduce(counts)
            if rank == 0:
                print(f"iteration {it + 1}: query accuracy {counts[0] / counts[1]:.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()
