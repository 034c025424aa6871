import os

import torch
import torch.distributed as dist


def bind():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    spread = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
    return spread, torch.device(f"cuda:{local_rank}")
