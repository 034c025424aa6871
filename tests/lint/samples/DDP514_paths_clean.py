import os
from pathlib import Path

import torch.distributed as dist


def begin(folder):
    (folder / "parts").mkdir(0o755, True, True)
    Path("last.lock").unlink(True)
    if dist.get_rank() == 0:
        os.remove(path="last.cache")
        Path("old").rmdir()


dist.init_process_group("gloo")
begin(Path("runs"))
