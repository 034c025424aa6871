import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def placed(batch, number):
    for name, each in batch.items():
        batch[name] = each.sent_to(number)
    return batch


def train(net, task, number):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(net, device_ids=[number])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in task.loader():
        if batch is None:
            continue
        batch = placed(batch, number)
        optimizer.zero_grad()
        loss = model(batch["input"]).mean()
        loss.backward()
        optimizer.step()


def main(tasks):
    train(torch.nn.Linear(4, 1), tasks.first(), dist.get_node_local_rank())
