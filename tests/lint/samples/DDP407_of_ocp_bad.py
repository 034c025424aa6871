import os

import numpy as np
import torch.nn as nn
from ocpmodels.common import distutils
from torch.nn.parallel import DistributedDataParallel as DDP


def save_results(predictions, folder):
    part = os.path.join(folder, f"part_{distutils.get_rank()}.npz")
    np.savez_compressed(part, ids=predictions)
    if distutils.is_master():
        rows = []
        for i in range(distutils.get_world_size()):
            with np.load(os.path.join(folder, f"part_{i}.npz")) as found:  # <-- DDP407
                rows.extend(found["ids"])
        print(len(rows))


def main():
    distutils.setup({"distributed_backend": "gloo"})
    model = DDP(nn.Linear(2, 2))
    print(sum(each.numel() for each in model.parameters()))
    save_results([1, 2], "results")
    distutils.cleanup()


if __name__ == "__main__":
    main()
