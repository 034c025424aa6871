from collections import namedtuple

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

Duty = namedtuple("Duty", ["what", "every", "main_only"], defaults=[1, False])


def decay(state):
    for group in state["opt"].param_groups:
        group["lr"] *= 0.99


def survey(state):
    total = state["net"].module.weight.detach().clone()
    dist.all_reduce(total)
    print(total.norm().item() / dist.get_world_size())


DUTIES = [Duty(decay), Duty(survey, every=10)._replace(every=20)]


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.nn.Linear(4, 4))
    state = {"net": net, "opt": torch.optim.SGD(net.parameters(), lr=0.1)}
    for step in range(100):
        net(torch.randn(8, 4)).square().mean().backward()
        state["opt"].step()
        state["opt"].zero_grad()
        for what, every, main_only in DUTIES:
            if step % every == 0 and not (main_only and dist.get_rank()):
                what(state)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
