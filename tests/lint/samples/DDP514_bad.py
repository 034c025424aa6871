import os
import shutil

import torch.distributed as dist


def fresh(path):
    shutil.rmtree(path, ignore_errors=True)  # <-- DDP514
    os.makedirs(path, exist_ok=True)


def main(root):
    dist.init_process_group("gloo")
    fresh(root)
    os.makedirs(os.path.join(root, "run-1"))  # <-- DDP514


if __name__ == "__main__":
    main("runs")
