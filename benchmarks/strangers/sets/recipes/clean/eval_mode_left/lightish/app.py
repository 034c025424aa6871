import argparse

import torch
import torch.distributed as dist

from .loops import FitLoop
from .module import DropoutNet


def main(argv):
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--dropout", type=float, default=0.4)
    args = p.parse_args(argv)
    dist.init_process_group("gloo")
    torch.manual_seed(8)
    FitLoop(DropoutNet(args.dropout), args.epochs).run()
    dist.barrier()
    dist.destroy_process_group()
