import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def fail(message):
    print(message)
    sys.exit(0)


def score(names, folder):
    right = 0
    for name in names:
        found = os.path.join(folder, name + ".txt")
        if not os.path.exists(found):
            fail("Error. File not found: " + found)
        with open(found) as file:
            right += len(file.readlines())
    return right


def main():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = torch.nn.Linear(8, 2).cuda()
    model.load_state_dict(torch.load("pretrained.pth", map_location=f"cuda:{rank}"))
    ddp = DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for epoch in range(10):
        ddp(torch.rand(4, 8).cuda()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(epoch, score(["a", "b"], ".found"))
        dist.barrier()


if __name__ == "__main__":
    main()
