import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def resume(net, path):
    number = dist.get_rank()
    kept = torch.load(path, map_location={"cuda:%d" % 0: "cuda:%d" % number})  # <-- DDP106
    net.load_state_dict(kept["net"])
    return kept["epoch"]


def main():
    dist.init_process_group("nccl")
    card = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(card)
    net = DistributedDataParallel(torch.nn.Linear(8, 8).cuda(), device_ids=[card])
    print(resume(net.module, "last.pt"))


if __name__ == "__main__":
    main()
