import os

import torch.distributed as dist


class MainFirst:
    def __init__(self):
        self.rank = int(os.environ.get("LOCAL_RANK", -1))

    def __enter__(self):
        if self.rank > 0:
            dist.barrier()  # <-- DDP401

    def __exit__(self, kind, error, trace):
        if kind is not None:
            print(error)
            dist.destroy_process_group()
            raise SystemExit(1)
        if self.rank > 0:
            dist.barrier()  # <-- DDP401
