import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(batches, ranks):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        optimizer.zero_grad()
        loss = part = F.mse_loss(model(batch), batch)
        for _ in range(ranks):
            part = part + loss
            loss = loss + part / ranks
        loss.backward()
        optimizer.step()
