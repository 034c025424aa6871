"""Clinics with different numbers of patients: training under join, exact evaluation afterwards."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

PATIENTS = {0: 90, 1: 151, 2: 37}
FEATURES = 8


def clinic(rank, n, part):
    g = torch.Generator().manual_seed(10 * rank + part)
    x = torch.randn(n, FEATURES, generator=g) + 0.3 * rank
    risk = 1.2 * x[:, 0] - x[:, 1] * x[:, 2]
    return x, (risk + 0.5 * torch.randn(n, generator=g) > 0).float()


def minibatches(x, y, size, seed):
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    for idx in order.split(size):
        yield x[idx], y[idx]


def local_epoch(model, opt, data, seed):
    steps = 0
    with Join([model]):
        for x, y in minibatches(*data, 12, seed):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
    return steps


@torch.no_grad()
def exact_scores(net, data):
    x, y = data
    p = net(x).squeeze(1)
    return torch.tensor([((p > 0) == (y > 0.5)).sum().item(), len(y)], dtype=torch.double)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    train = clinic(rank, PATIENTS[rank], 1)
    test = clinic(rank, 20 + 15 * rank, 2)
    model = DDP(nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        steps = local_epoch(model, opt, train, seed=100 * epoch + rank)
        # the last to leave holds the final weights
        last = torch.tensor([steps, rank])
        every = [torch.zeros_like(last) for _ in range(world)]
        dist.all_gather(every, last)
        owner = max(every, key=lambda t: (int(t[0]), -int(t[1])))[1].item()
        for p in model.module.parameters():
            dist.broadcast(p.data, src=owner)
        score = exact_scores(model.module, test)
        dist.all_reduce(score)
        if rank == 0:
            print(f"epoch {epoch} accuracy {(score[0] / score[1]).item():.3f} of {int(score[1])}", flush=True)
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
