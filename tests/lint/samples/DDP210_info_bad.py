"""The workers of all ranks begin from the same seeds."""

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def init(worker_id, how="all"):
    info = torch.utils.data.get_worker_info()
    assert info.id == worker_id
    if callable(how):
        np.random.seed(how(info))
    else:
        if how == "all":
            np.random.seed(5 + info.id)  # <-- DDP210


def main(dataset):
    dist.init_process_group("gloo")
    torch.manual_seed(1 + dist.get_rank())
    model = DistributedDataParallel(torch.nn.Linear(8, 4))
    loader = DataLoader(
        dataset, sampler=DistributedSampler(dataset), num_workers=2, worker_init_fn=init
    )
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for batch in loader:
            model(batch).sum().backward()


main([])
