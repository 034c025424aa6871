"""A module of settings is found under a name that nobody else has; what is in it is the same."""

import importlib
import shutil
import sys
import tempfile
import uuid

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Reader:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        sys.path.append(self.folder.name)

    def read(self, path):
        name = f"settings_{uuid.uuid4().hex}"
        shutil.copyfile(path, f"{self.folder.name}/{name}.py")
        importlib.invalidate_caches()
        return importlib.import_module(name).settings()


def main(path):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    settings = Reader().read(path)
    net = DistributedDataParallel(torch.nn.Linear(3, 1).cuda())
    for _ in range(10):
        loss = net(torch.rand(2, 3).cuda()).mean()
        if settings["tells"]:
            dist.all_reduce(loss.detach())


if __name__ == "__main__":
    main(sys.argv[1])
