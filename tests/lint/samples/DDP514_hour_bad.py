import datetime
from pathlib import Path

import torch.distributed as dist


def folder(base, name):
    day = datetime.datetime.now().strftime("%Y-%m-%d")
    path = Path(base) / day / name
    path.mkdir(parents=True)  # <-- DDP514
    return path


dist.init_process_group("gloo")
print(folder("runs", "segmentation"))
