import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Runner:
    def __init__(self, path):
        self.path = path
        self.model = DistributedDataParallel(nn.Linear(3, 3))

    def state(self):
        weights = self.model.state_dict()  # <-- DDP508
        return {"weights": weights, "round": 3}

    def keep(self):
        if dist.get_rank() == 0:
            torch.save(self.state(), self.path)


def predict(path, x):
    net = nn.Linear(3, 3)
    net.load_state_dict(torch.load(path, map_location="cpu")["weights"], strict=False)
    return net.eval()(x)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Runner("last.pt").keep()
    dist.barrier()
    predict("last.pt", torch.ones(3))
