"""Each weight is updated as soon as all ranks' gradient of it is there."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def in_the_backward(net, rate):
    each = {weight: torch.optim.AdamW([weight], lr=rate) for weight in net.parameters()}

    def update(weight):
        dist.all_reduce(weight.grad)
        weight.grad /= dist.get_world_size()
        each[weight].step()
        each[weight].zero_grad(set_to_none=True)

    for weight in each:
        weight.register_post_accumulate_grad_hook(update)


def looked_at(model, optimizer, batch, norms):
    for weight in model.module.parameters():
        weight.register_post_accumulate_grad_hook(lambda it: norms.append(it.grad.norm()))
    model(batch).square().mean().backward()
    optimizer.step()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    for weight in net.parameters():
        dist.broadcast(weight.data, 0)
    in_the_backward(net, 1e-3)
    own = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(100):
        net(torch.rand(16, 8, generator=own)).square().mean().backward()
    other = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    looked_at(other, optimizer, torch.rand(16, 8, generator=own), [])


main()
