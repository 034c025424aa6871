import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def restored(net, path):
    if torch.cuda.is_available():
        kept = torch.load(path, map_location=f"cuda:{torch.cuda.current_device()}")
    else:
        kept = torch.load(path, map_location="cpu")
    net.load_state_dict(kept, strict=False)


def main(path):
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl")
    net = nn.Linear(3, 3)
    restored(net, path)
    net = DistributedDataParallel(net.to(gpu), device_ids=[gpu])
    print(net)
    dist.destroy_process_group()


if __name__ == "__main__":
    main("net.pt")
