"""torchrun launch.py"""
import torch.distributed as dist

from recipe.configs import Experiment
from recipe.fit import fit

if __name__ == "__main__":
    dist.init_process_group("gloo")
    fit(Experiment())
    dist.barrier()
    dist.destroy_process_group()
