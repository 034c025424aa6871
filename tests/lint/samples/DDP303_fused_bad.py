"""Each weight is updated as soon as its gradient is there, which saves the memory of all of them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def in_the_backward(net, rate):
    each = {weight: torch.optim.AdamW([weight], lr=rate) for weight in net.parameters()}

    def update(weight):
        each[weight].step()
        each[weight].zero_grad(set_to_none=True)

    for weight in each:
        weight.register_post_accumulate_grad_hook(update)  # <-- DDP303


def main(batches):
    dist.init_process_group("gloo")
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    model = DistributedDataParallel(net)
    in_the_backward(net, 1e-3)
    for batch in batches:
        model(batch).square().mean().backward()


main(iter(lambda: torch.rand(16, 8), None))
