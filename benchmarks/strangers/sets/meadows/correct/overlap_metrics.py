"""Traffic flow model; the running loss is reduced in the background while the next step runs."""
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass
class Pending:
    step: int
    value: torch.Tensor
    work: object

    def finish(self):
        self.work.wait()
        return self.step, self.value.item() / dist.get_world_size()


class BackgroundMean:
    """Has at most one reduction in flight, on a group of its own."""

    def __init__(self):
        self.group = dist.new_group()
        self.pending = None

    def push(self, step, loss):
        done = self.pop()
        value = loss.detach().clone()
        self.pending = Pending(step, value, dist.all_reduce(value, group=self.group, async_op=True))
        return done

    def pop(self):
        if self.pending is None:
            return None
        done, self.pending = self.pending.finish(), None
        return done


def junctions(n):
    g = torch.Generator().manual_seed(4)
    flow = torch.rand(n, 12, generator=g)
    mix = torch.softmax(torch.randn(12, 4, generator=g), 0)
    return TensorDataset(flow, flow @ mix)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = junctions(320)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 16, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(12, 32), nn.SiLU(), nn.Linear(32, 4)))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    mean = BackgroundMean()
    log = []
    step = 0
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            log.append(mean.push(step, loss))
            step += 1
    log.append(mean.pop())
    if rank == 0:
        for at, value in log[1::10]:
            print(f"step {at} loss {value:.4f}")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
