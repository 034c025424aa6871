import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, model, local):
        self.local = local
        self.model = DDP(model.cuda(local), device_ids=[local])

    def fit(self, data):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for batch in data:
            loss = self.model(batch.cuda(self.local)).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if torch.isnan(loss).any() or torch.isinf(loss).any():
                self.leave()

    def leave(self):
        dist.barrier()  # <-- DDP405
        dist.destroy_process_group()
        exit("ended")


def main():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    Trainer(torch.nn.Linear(8, 1), local).fit(torch.rand(100, 4, 8))


if __name__ == "__main__":
    main()
