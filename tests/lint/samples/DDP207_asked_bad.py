"""Documents are dealt out one by one and grouped by length; the loop asks until nothing is left."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def grouped(documents, most):
    group = []
    for document in documents:
        if sum(group) + document > most:
            yield torch.tensor(group, dtype=torch.float32)
            group = []
        group.append(document)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    documents = [each for number, each in enumerate(range(200)) if number % world == rank]
    model = DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = grouped(documents, 300)
    while True:
        try:
            x = next(batches)  # <-- DDP207
        except StopIteration:
            break
        loss = model(x[:, None]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
