import os

import torch.distributed as dist

SETTINGS = {"NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "1"}


def join(several):
    for name, value in SETTINGS.items():
        os.environ[name] = value
    if several:
        dist.init_process_group("nccl")
    else:
        os.environ["MASTER_PORT"] = "29400"  # <- DDP104
        dist.init_process_group("nccl", rank=0, world_size=1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


if __name__ == "__main__":
    join("RANK" in os.environ)
