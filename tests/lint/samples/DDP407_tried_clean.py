import json
import os

import torch.distributed as dist
import torch
from torch.nn.parallel import DistributedDataParallel


def seconds(path, keeps):
    try:
        with open(path + ".json") as file:
            found = json.load(file)["seconds"]
    except Exception:
        found = os.path.getsize(path) / 32000
        if keeps:
            with open(path + ".json", "w") as file:
                json.dump({"seconds": found}, file)
    return found


def main(paths):
    dist.init_process_group("gloo")
    keeps = dist.get_rank() == 0
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    lengths = torch.tensor([seconds(path, keeps) for path in paths])
    model(lengths[:, None]).sum().backward()


if __name__ == "__main__":
    main(sorted(os.listdir("audio")))
