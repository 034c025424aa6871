"""A term of the loss comes in some steps alone, and its head has no gradient in the others."""

import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(7, 32)
        self.actor = nn.Linear(32, 4)
        self.touch = nn.Linear(32, 1)

    def forward(self, state):
        hidden = self.trunk(state).relu()
        return {"action": self.actor(hidden), "touch": self.touch(hidden)}


def objective(out, action, touch, step, every):
    terms = {"cloned": F.mse_loss(out["action"], action)}
    if step % every == 0:  # <-- DDP301
        terms["touch"] = 0.1 * F.mse_loss(out["touch"], touch)
    return sum(terms.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--touch-every", type=int, default=4)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    policy = DistributedDataParallel(Policy())
    adam = torch.optim.Adam(policy.parameters())
    step = 0
    for state, action, touch in torch.load("demonstrations.pt"):
        loss = objective(policy(state), action, touch, step, options.touch_every)
        adam.zero_grad()
        loss.backward()
        adam.step()
        step += 1
    dist.destroy_process_group()


main()
