"""The chief scores the model on a small hold-out set that nobody else has, tells
the others the learning rate for the next round, and keeps the best weights.
"""
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def rows(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    return x, (x[:, 0] * x[:, 1] + x[:, 2] > 0).float()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 24)
        self.bn = nn.BatchNorm1d(24)
        self.b = nn.Linear(24, 1)

    def forward(self, x):
        return self.b(torch.relu(self.bn(self.a(x)))).squeeze(1)


@torch.no_grad()
def score(net, x, y):
    # the bare network: the wrapper would want the other processes to take part
    net.eval()
    acc = ((net(x) > 0).float() == y).float().mean().item()
    net.train()
    return acc


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    chief = rank == 0
    torch.manual_seed(rank)

    x, y = rows(400, seed=1)
    x, y = x[rank::world], y[rank::world]
    if chief:
        held_x, held_y = rows(150, seed=2)
        best, patience = (0.0, None), 0

    ddp = DDP(Net())
    opt = torch.optim.SGD(ddp.parameters(), lr=0.2, momentum=0.9)
    gen = torch.Generator().manual_seed(40 + rank)

    for rnd in range(8):
        for _ in range(10):
            idx = torch.randint(0, len(x), (32,), generator=gen)
            opt.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(ddp(x[idx]), y[idx]).backward()
            opt.step()

        orders = [None]
        if chief:
            acc = score(ddp.module, held_x, held_y)
            if acc > best[0]:
                best, patience = (acc, copy.deepcopy(ddp.module.state_dict())), 0
            else:
                patience += 1
            orders = [{"lr": opt.param_groups[0]["lr"] * (0.5 if patience else 1.0), "stop": patience >= 3}]
            print(f"round {rnd} acc {acc:.3f} orders {orders[0]}", flush=True)
        dist.broadcast_object_list(orders, src=0)
        for group in opt.param_groups:
            group["lr"] = orders[0]["lr"]
        if orders[0]["stop"]:
            break

    if chief:
        ddp.module.load_state_dict(best[1])
    for t in ddp.module.state_dict().values():
        dist.broadcast(t, src=0)
    total = torch.tensor([score(ddp.module, x, y) * len(x), float(len(x))])
    dist.all_reduce(total)
    if chief:
        print(f"best hold-out {best[0]:.3f}, train {(total[0] / total[1]).item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
