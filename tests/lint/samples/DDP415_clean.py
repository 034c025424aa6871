from datetime import timedelta

import torch.distributed as dist

TIMEOUT = timedelta(seconds=60)


def setup():
    dist.init_process_group("gloo", timeout=TIMEOUT)
    return dist.new_group([0, 1], timeout=TIMEOUT)
