# style: functions, logging, error handling around saves
# nproc: 3
import logging
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

log = logging.getLogger("train")


def save_checkpoint(model, optimizer, folder, epoch):
    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
    path = os.path.join(folder, f"epoch-{epoch}.pt")
    torch.save(state, path)  # <-- DDP511
    with open(os.path.join(folder, "latest"), "w") as file:
        file.write(os.path.basename(path))


def end_of_epoch(model, optimizer, folder, epoch):
    if dist.get_rank() == 0:
        try:
            save_checkpoint(model, optimizer, folder, epoch)
        except (OSError, RuntimeError) as error:
            log.error("could not save, giving up: %s", error)
            return False  # <-- DDP511
    dist.barrier()
    return True


def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    x = torch.randn(36, 3)
    data = TensorDataset(x, x[:, :1] - x[:, 1:2])
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
    model = DDP(nn.Linear(3, 1))
    optimizer = torch.optim.Adam(model.parameters())
    folder = os.path.join("results", "run-1")
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        train(model, loader, optimizer)
        if not end_of_epoch(model, optimizer, folder, epoch):
            break
    total = torch.tensor(float(len(data)))
    dist.all_reduce(total)
    log.info("rank %d done", dist.get_rank())


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
