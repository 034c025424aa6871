from datetime import timedelta

import torch.distributed as dist


def setup():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    return dist.new_group([0, 1])  # <-- DDP415


def other():
    return dist.new_group([0], timeout=60)  # <-- DDP415
