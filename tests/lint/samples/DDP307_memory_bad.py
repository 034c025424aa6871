import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def learn(batches, net):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(net)
    steps = torch.optim.SGD(model.parameters(), 0.1)
    for rows in batches:
        try:
            steps.zero_grad()
            model(rows).mean().backward()
            steps.step()
        except RuntimeError as error:
            if "out of memory" in str(error):
                torch.cuda.empty_cache()
                print("too large, left out")
                continue  # <-- DDP307
            raise
