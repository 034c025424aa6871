import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

import torch
import torch.distributed as dist

from seg.config import get_cfg
from seg.engine import PreviewHook, TrainLoop

if __name__ == "__main__":
    dist.init_process_group("gloo")
    cfg = get_cfg()
    torch.manual_seed(cfg["SEED"])
    loop = TrainLoop(cfg)
    loop.register(PreviewHook(cfg["PREVIEW_PERIOD"]))
    loop.train()
    dist.barrier()
    dist.destroy_process_group()
