"""The script."""

import checkpoint
import comm
from data import make_loader
from torch.nn.parallel import DistributedDataParallel


def main(net, data):
    comm.join()
    loader = make_loader(data)
    model = DistributedDataParallel(net)
    for batch in loader:
        model(batch).sum().backward()
    checkpoint.save(model.module, "model.pt")
