import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def evaluate(model, loader):
    return sum(float(model(batch).mean()) for batch in loader)


def main(net, data, rank):
    model = DDP(net)
    loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))
    best = 0.0
    accuracy = torch.tensor(evaluate(model, loader))
    dist.all_reduce(accuracy, op=dist.ReduceOp.AVG)
    if accuracy > best:
        best = accuracy
        if rank == 0:
            torch.save(model.module.state_dict(), "best.pt")
