import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def settle(plan):
    held = [plan]
    dist.broadcast_object_list(held, src=0)
    return held[0]


def main():
    dist.init_process_group("gloo")
    dice = random.Random(dist.get_rank())
    net = DDP(torch.nn.Linear(2, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(4):
        plan = settle({"scale": dice.random(), "kind": dice.choice(["a", "b"])})
        loss = net(torch.randn(4, 2) * plan["scale"]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
