import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


@torch.no_grad()
def measure(model, loader, steps):
    found = []
    for number, batch in enumerate(loader):
        if number == steps:
            break
        found.append(model(batch["x"]).mean())
    return torch.stack(found).mean()


def main(data, held_out, steps):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    other = DataLoader(held_out, sampler=DistributedSampler(held_out, shuffle=False))
    batches, epoch = iter(loader), 0
    for step in range(steps):
        try:
            batch = next(batches)
        except StopIteration:
            epoch += 1
            sampler.set_epoch(epoch)
            batches = iter(loader)
            batch = next(batches)
        optimizer.zero_grad()
        model(batch["x"]).sum().backward()
        optimizer.step()
        if step % 100 == 0:
            print(measure(model, loader, 5), measure(model, other, 5))
