import logging
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

if "PLOTS" in os.environ:
    import matplotlib


def begin(folder, resume, verbose):
    rank = dist.get_rank()
    if rank == 0:
        run = os.path.join(folder, "run")
        os.makedirs(run, exist_ok=True)
        logger = logging.getLogger(run)
        started = run
    else:
        logger = logging.getLogger("silent")
    if verbose and rank == 0:
        shown = logger.name
    net = nn.Linear(8, 2)
    if rank > 0:
        started = folder
    logger.info(started)
    dist.barrier()
    if resume:
        newest = sorted(os.listdir(run))[-1]  # <-- DDP404
        net.load_state_dict(torch.load(os.path.join(folder, "run", newest), map_location="cpu"))
    if rank == 0:
        logger.info(run)
        if verbose:
            logger.info(shown)
    return DistributedDataParallel(net)


def main(folder, resume):
    dist.init_process_group("gloo")
    model = begin(folder, resume, "-v" in sys.argv)
    if "PLOTS" in os.environ:
        matplotlib.use("agg")
    dist.barrier()
    return model


if __name__ == "__main__":
    main(sys.argv[1], "resume" in sys.argv)
