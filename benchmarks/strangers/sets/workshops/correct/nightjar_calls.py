"""Bird calls with ragged shards: the ranks have other numbers of batches, Join makes up for it."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel


def shard(rank):
    g = torch.Generator().manual_seed(7 + rank)
    n = 150 + 37 * rank
    x = torch.randn(n, 20, generator=g)
    return x, (x[:, :4].sum(1) > 0).long()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    x, y = shard(rank)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2)))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        right = torch.zeros(2)
        with Join([model]):
            for i in torch.randperm(len(x)).split(16):
                out = model(x[i])
                loss = nn.functional.cross_entropy(out, y[i])
                opt.zero_grad()
                loss.backward()
                opt.step()
                right += torch.tensor([(out.argmax(1) == y[i]).sum().item(), len(i)])
        dist.all_reduce(right)
        if rank == 0:
            print(f"epoch {epoch} acc {(right[0] / right[1]).item():.3f}", flush=True)
    dist.destroy_process_group()
