import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from dataloaders import create_dataloader
from utils.general import LOGGER, colorstr

RANK = int(os.getenv("RANK", -1))
WORLD_SIZE = int(os.getenv("WORLD_SIZE", 1))


def train(opt):
    root = os.path.join(tempfile.gettempdir(), f"toyyolo_{os.environ['MASTER_PORT']}")
    train_loader = create_dataloader(root, "train", opt["batch"] // WORLD_SIZE, RANK, prefix=colorstr("train: "))
    val_loader = create_dataloader(root, "train", opt["batch"], RANK, prefix=colorstr("val: "))
    model = DDP(nn.Sequential(nn.Linear(12, 32), nn.SiLU(), nn.Linear(32, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for epoch in range(opt["epochs"]):
        train_loader.sampler.set_epoch(epoch)
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    correct = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    LOGGER.info(f"{epoch + 1} epochs completed, {correct} right")
    dist.barrier()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    train({"batch": 32, "epochs": 2})
    dist.barrier()
    dist.destroy_process_group()
