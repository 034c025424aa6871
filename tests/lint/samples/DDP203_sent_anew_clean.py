import os

import torch
import torch.distributed as dist
from datasets import load_dataset
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def of_this_epoch(rows, stage):
    sent = [None]
    if dist.get_rank() == 0:
        sent = [rows.map(lambda row: {"x": row["x"], "stage": stage}).shuffle()]
    dist.broadcast_object_list(sent, src=0)
    return sent[0]


def fit(model, optimizer, rows, epochs):
    for epoch in range(epochs):
        data = of_this_epoch(rows, epoch // 3)
        sampler = DistributedSampler(data, shuffle=True)
        loader = DataLoader(data, batch_size=16, sampler=sampler)
        for batch in loader:
            optimizer.zero_grad()
            model(batch["x"].cuda()).sum().backward()
            optimizer.step()


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = DistributedDataParallel(torch.nn.Linear(8, 8).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    fit(model, optimizer, load_dataset("rows")["train"], 12)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
