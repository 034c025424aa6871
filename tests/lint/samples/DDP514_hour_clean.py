import datetime
from pathlib import Path

import torch.distributed as dist


def folder(base, name):
    day = datetime.datetime.now().strftime("%Y-%m-%d")
    path = Path(base) / day / name
    if dist.get_rank() == 0:
        path.mkdir(parents=True)
    dist.barrier()
    return path


dist.init_process_group("gloo")
print(folder("runs", "segmentation"))
