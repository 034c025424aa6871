# style: asynchronous collectives overlapped with computation
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class RunningMean:
    """The mean of a value over ranks, one step late, so that nobody waits for it."""

    def __init__(self):
        self.work, self.tensor, self.values = None, None, []

    def push(self, value):
        self.flush()
        self.tensor = value.detach().clone()
        self.work = dist.all_reduce(self.tensor, async_op=True)

    def flush(self):
        if self.work is not None:
            self.work.wait()
            self.values.append(self.tensor.item() / dist.get_world_size())
            self.work = None


def prefetch(batch, source):
    return dist.broadcast(batch, src=source, async_op=True)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(rank)
    mean = RunningMean()
    extra = torch.zeros(4, 6)
    for step in range(8):
        shared = torch.randn(4, 6, generator=generator)
        work = prefetch(shared, step % 2)
        x = torch.cat([torch.randn(12, 6, generator=generator), extra])
        loss = (model(x) - x.sum(1, keepdim=True)).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean.push(loss)
        work.wait()
        extra = shared
    mean.flush()
    future = dist.all_reduce(torch.ones(3), async_op=True).get_future()
    future.wait()
    if rank == 0:
        print(" ".join(f"{value:.3f}" for value in mean.values))
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
