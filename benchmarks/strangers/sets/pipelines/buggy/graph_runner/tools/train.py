import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import torch
import torch.distributed as dist

from graphlib_toy.model import build_model
from graphlib_toy.runner import EpochRunner
from graphlib_toy.data import MoleculeToy


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(11)
    runner = EpochRunner(build_model(hidden=24), MoleculeToy(160), lr=5e-3, batch_size=10)
    runner.run(max_epochs=2)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
