import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def rows(path, rank, world):
    with open(path) as file:
        for number, line in enumerate(file):
            if number % world == rank:
                yield json.loads(line)


def batches(given, size):
    batch = []
    for row in given:
        batch.append(row)
        if sum(map(sum, batch)) > size:  # <-- DDP307
            yield torch.tensor(batch)
            batch.clear()


def main(path="train.jsonl", total=1000):
    dist.init_process_group("nccl")
    rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    model = DDP(torch.nn.Linear(8, 1).cuda(local), device_ids=[local])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = 0
    while step < total:
        for batch in batches(rows(path, rank, dist.get_world_size()), 16):
            step += 1
            loss = model(batch.cuda(local)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step >= total:
                break


if __name__ == "__main__":
    main()
