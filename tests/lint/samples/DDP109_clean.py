import os
from datetime import timedelta

import torch.distributed as dist


def main():
    os.environ["NCCL_DEBUG"] = "INFO"
    os.environ["MY_TIMEOUT"] = "60"
    dist.init_process_group("nccl", timeout=timedelta(hours=1))
    print(os.environ["NCCL_TIMEOUT"])
