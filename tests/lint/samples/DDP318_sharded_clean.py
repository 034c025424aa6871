import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP


def main(mesh):
    dist.init_process_group("gloo")
    model = torch.nn.Linear(4, 4)
    if mesh is None:
        model = DDP(model)
    else:
        fully_shard(model, mesh=mesh)
    for step in range(4):
        if isinstance(model, FSDPModule):
            model.set_requires_gradient_sync(step == 3)
        model(torch.randn(2, 4)).sum().backward()


if __name__ == "__main__":
    main(None if len(sys.argv) < 2 else init_device_mesh("cpu", (2,)))
