import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(net, rank, path):
    model = DDP(net)
    if rank == 0:
        state = {"model": model.state_dict()}  # <-- DDP508
        torch.save(state, path)


def predict(net, path):
    net.load_state_dict(torch.load(path, map_location="cpu")["model"])
    return net.eval()
