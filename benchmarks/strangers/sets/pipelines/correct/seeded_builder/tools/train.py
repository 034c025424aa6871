import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import torch.distributed as dist

from gen.build import build, set_random_seed
from gen.cfg import CFG
from gen.loop import train

if __name__ == "__main__":
    dist.init_process_group("gloo")
    set_random_seed(CFG["seed"], diff_rank_seed=True)
    train(build(CFG["model"]), CFG)
    dist.barrier()
    dist.destroy_process_group()
