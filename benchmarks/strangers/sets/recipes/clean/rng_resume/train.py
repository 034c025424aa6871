import os

import torch
import torch.distributed as dist

from ldm.state import TrainState
from ldm.trainer import train_until

if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(1234 + dist.get_rank())
    path = "state.pt"
    train_until(TrainState.fresh(), step=10, path=path)
    dist.barrier()
    torch.manual_seed(1234 + dist.get_rank())
    train_until(TrainState.load(path), step=20, path=path, verbose=True)
    dist.barrier()
    dist.destroy_process_group()
