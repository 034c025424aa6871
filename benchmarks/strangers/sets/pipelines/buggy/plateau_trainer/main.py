import argparse

import torch
import torch.distributed as dist

from src.train import PlateauTrainer


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--epochs", type=int, default=12)
    p.add_argument("--patience", type=int, default=0)
    return p.parse_args()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    PlateauTrainer(parse()).run()
    dist.barrier()
    dist.destroy_process_group()
