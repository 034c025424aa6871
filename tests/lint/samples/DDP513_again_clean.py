import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Average:
    def __init__(self, weights):
        self.shadow = [each.detach().clone() for each in weights]


def restore(model, path):
    kept = torch.load(path, map_location="cpu")
    model.load_state_dict(kept["model"])
    return model


def main(folder, resume, batches):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(8, 2))
    average = None
    if resume:
        if dist.get_rank() == 0:
            kept = restore(model.module, f"{folder}/average.pt")
            average = Average(kept.parameters())
        try:
            restore(model.module, f"{folder}/last.pt")
        except OSError:
            restore(model.module, f"{folder}/backup.pt")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
    return average
