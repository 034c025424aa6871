import os

import torch.distributed as dist

SETTINGS = {"NCCL_DEBUG": "INFO", "NCCL_TIMEOUT": "600"}


def quiet(name):
    os.environ[name] = "1"  # <-- DDP109


def join():
    os.environ.update(SETTINGS)  # <-- DDP109
    dist.init_process_group("nccl")


def main():
    join()
    quiet("NCCL_IB_DISABLE")


if __name__ == "__main__":
    main()
