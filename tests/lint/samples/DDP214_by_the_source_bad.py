import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def settle(plan, src=0):
    if dist.get_rank() == src:
        held = [plan]
        dist.broadcast_object_list(held, src=src)
        return held[0]
    dist.broadcast_object_list([plan], src=src)  # <-- DDP214
    return plan


def hand_round(chosen, source):
    if dist.get_rank() == source:
        dist.broadcast_object_list([chosen], src=source)
        return chosen
    held = [None]
    dist.broadcast_object_list(held, src=source)
    return held[0]


def main(source):
    dist.init_process_group("gloo")
    dice = random.Random(dist.get_rank())
    net = DDP(torch.nn.Linear(2, 2))
    rate = hand_round(dice.random(), source)
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    for _ in range(4):
        plan = settle({"scale": dice.random(), "kind": dice.choice(["a", "b"])})
        loss = net(torch.randn(4, 2) * plan["scale"]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main(int(input()))
