import random

import torch
import torch.distributed as dist


def collect():
    local = {"torch": torch.get_rng_state(), "python": random.getstate()}
    states = [None] * dist.get_world_size()
    dist.all_gather_object(states, local)
    return states


def restore(states):
    state = states[dist.get_rank()]
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])
