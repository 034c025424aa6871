import os
import shutil
import tempfile

import torch.distributed as dist


def fresh(path):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path, exist_ok=True)


def main(root):
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        fresh(root)
    dist.barrier()
    os.makedirs(os.path.join(root, f"rank-{dist.get_rank()}"))
    own = tempfile.mkdtemp()
    shutil.rmtree(own)


if __name__ == "__main__":
    main("runs")
