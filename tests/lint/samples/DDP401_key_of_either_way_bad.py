import os

import torch
import torch.distributed as dist
import yaml
from torch.nn.parallel import DistributedDataParallel


def limits(config):
    found = {"last_iter": 0}
    if config.get("by_iterations"):
        found["max_iter"] = config["limit"]
    else:
        found["max_epoch"] = config["limit"]
    return found


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    with open("config.yaml") as file:
        config = yaml.safe_load(file)
    given = limits(config)
    for name in config["keys"]:
        print(name, given[name])
    for test in config["tests"]:
        test.update(given)
    model = DistributedDataParallel(torch.nn.Linear(8, 2).cuda())
    model(torch.rand(4, 8).cuda()).sum().backward()
    if dist.get_rank() == 0:
        dist.barrier()  # <-- DDP401
        print("done")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
