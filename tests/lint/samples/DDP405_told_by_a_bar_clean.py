# Rank 0 goes through the same epochs as the others, by way of a bar that may not be installed.
import os

import torch
import torch.distributed as dist
from monai.utils import optional_import
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

tqdm, has_tqdm = optional_import("tqdm", name="tqdm")


def validate(model, loader):
    held = torch.zeros(2, device="cuda")
    with torch.no_grad():
        for x, y in loader:
            held += torch.stack([(model(x.cuda()) - y.cuda()).abs().sum(), y.cuda().numel()])
    dist.all_reduce(held)
    return (held[0] / held[1]).item()


def main(training, validation, epochs):
    dist.init_process_group("nccl")
    rank, gpu = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    torch.manual_seed(rank)
    model = DDP(nn.Linear(8, 1).cuda(), device_ids=[gpu])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    due, errors = [5, 10, 20], []
    rounds = range(epochs)
    if rank == 0 and has_tqdm:
        rounds = tqdm(range(epochs), desc="training", unit="epoch")
    for epoch in rounds:
        training.sampler.set_epoch(epoch)
        for x, y in training:
            loss = nn.functional.l1_loss(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if due and epoch + 1 >= due[0]:
            due.pop(0)
            errors.append(validate(model, validation))
            if epoch > epochs / 2 and errors[-1] > errors[-2]:
                break
    dist.destroy_process_group()


if __name__ == "__main__":
    import loaders

    main(loaders.training(), loaders.validation(), int(os.environ["EPOCHS"]))
