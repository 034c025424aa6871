import os

import torch.distributed as dist


def main():
    os.environ["NCCL_TIMEOUT"] = "3600"  # <-- DDP109
    os.environ.setdefault("NCCL_BLOCKING_WAIT", "1")  # <- DDP109
    dist.init_process_group("nccl")
    os.environ["NCCL_DEBUG"] = "INFO"  # <-- DDP109
