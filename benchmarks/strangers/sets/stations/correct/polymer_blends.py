"""Property prediction for polymer blends on two racks with two hosts each.

    torchrun --nproc_per_node 4 polymer_blends.py
"""
import os
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class RackState:
    inside: object
    across: object
    inside_size: int
    across_size: int
    calls: dict = field(default_factory=dict)


def build_racks(rank, world, per_rack):
    inside = across = None
    for first in range(0, world, per_rack):
        members = list(range(first, first + per_rack))
        group = dist.new_group(members)
        if rank in members:
            inside = group
    for slot in range(per_rack):
        members = list(range(slot, world, per_rack))
        group = dist.new_group(members)
        if rank in members:
            across = group
    return RackState(inside, across, per_rack, world // per_rack)


def rack_hook(state, bucket):
    grad = bucket.buffer()
    grad.div_(state.inside_size)
    dist.all_reduce(grad, group=state.inside)
    grad.div_(state.across_size)
    dist.all_reduce(grad, group=state.across)
    state.calls[bucket.index()] = state.calls.get(bucket.index(), 0) + 1
    done = torch.futures.Future()
    done.set_result(grad)
    return done


class BlendNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.monomer = nn.Embedding(30, 12)
        self.mlp = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, a, b):
        return self.mlp(torch.cat([self.monomer(a), self.monomer(b)], 1)).squeeze(1)


def blends(rank):
    g = torch.Generator().manual_seed(rank)
    table = torch.randn(30, generator=torch.Generator().manual_seed(77))
    while True:
        a, b = torch.randint(30, (2, 40), generator=g)
        yield a, b, table[a] * 0.7 + table[b] * 0.3 + 0.2 * table[a] * table[b]


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(10 * rank)
    state = build_racks(rank, world, per_rack=2)
    model = DDP(BlendNet())
    model.register_comm_hook(state, rack_hook)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    stream = blends(rank)
    for step in range(30):
        a, b, y = next(stream)
        loss = nn.functional.mse_loss(model(a, b), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 9:
            shown = loss.detach().clone()
            dist.all_reduce(shown, group=state.inside)
            if rank % 2 == 0:
                print(f"rack {rank // 2} step {step + 1} loss {shown.item() / 2:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
