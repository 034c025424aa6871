import torch
from torch.nn.parallel import DistributedDataParallel


def placed(net, many=False, device="cpu"):
    if many and isinstance(net, torch.nn.Module):
        return DistributedDataParallel(net.to(device))
    return net.to(device)


class Task:
    def __init__(self, settings, nets):
        self.settings = settings
        self.net = placed(nets[0], many=settings["distributed"])
        if self.settings["distributed"]:
            self.net.module.set_schedule(settings["schedule"])
        else:
            self.net.set_schedule(settings["schedule"])
