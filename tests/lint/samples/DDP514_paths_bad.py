import os
from pathlib import Path

import torch.distributed as dist


def begin(folder):
    (folder / "parts").mkdir(0o755, True)  # <-- DDP514
    os.remove(path="last.cache")  # <-- DDP514
    Path("last.lock").unlink()  # <-- DDP514
    Path("old").rmdir()  # <-- DDP514


dist.init_process_group("gloo")
begin(Path("runs"))
