import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(folder):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = DistributedDataParallel(nn.Linear(3, 1).cuda())
    learner = torch.optim.Adam(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(learner, step_size=5)
    if folder is not None:
        learner.load_state_dict(torch.load(folder + "/learner.pt", map_location="cpu"))
        schedule.load_state_dict(torch.load(folder + "/schedule.pt"))
    for _ in range(20):
        learner.zero_grad()
        net(torch.randn(4, 3).cuda()).mean().backward()
        learner.step()
        schedule.step()


if __name__ == "__main__":
    main(os.environ.get("FOLDER"))
