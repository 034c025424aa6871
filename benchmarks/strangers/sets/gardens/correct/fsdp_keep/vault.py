import os

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict


def full_weights(model):
    return get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))


def keep(model, path):
    weights = full_weights(model)
    if dist.get_rank() == 0:
        torch.save(weights, path + ".tmp")
        os.replace(path + ".tmp", path)
    dist.barrier()
