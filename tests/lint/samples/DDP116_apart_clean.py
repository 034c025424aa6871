import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Settings:
    def __init__(self, given):
        self.given = dict(given)
        if "local_rank" not in self.given:
            self.given["alone"] = True
            self.given["device"] = (
                torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
            )
        else:
            dist.init_process_group("nccl", rank=self.given["rank"], world_size=self.given["ranks"])
            self.given["alone"] = False
            self.given["device"] = torch.device("cuda", self.given["local_rank"])

    def __getitem__(self, name):
        return self.given[name]


def build(net, given):
    settings = Settings(given)
    net = net.to(settings["device"])
    if not settings["alone"]:
        net = DistributedDataParallel(net, device_ids=[settings["local_rank"]])
    return net


def main(given):
    return build(torch.nn.Linear(2, 2), given)
