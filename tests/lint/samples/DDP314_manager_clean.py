"""What holds back the reduction is a context manager of the program's own."""

import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


@contextlib.contextmanager
def reducing(model, now):
    if not now:
        with model.no_sync():
            yield
    else:
        yield


def train(model, optimizer, loader, every):
    for number, (images, wanted) in enumerate(loader, 1):
        is_last = number % every == 0
        with reducing(model, is_last):
            loss = torch.nn.functional.mse_loss(model(images), wanted) / every
            loss.backward()
        if is_last:
            optimizer.step()
            optimizer.zero_grad()


def main(loader):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(12, 3))
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), loader, 4)


if __name__ == "__main__":
    main(__import__("data").batches())
