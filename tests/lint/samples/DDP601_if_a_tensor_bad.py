import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 1)

    def forward(self, x):
        logits = self.inner(x)
        return logits.square().mean(), logits


class Meter:
    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def update(self, loss):
        if isinstance(loss, torch.Tensor):
            loss = loss.float()
        self.sum += loss  # <-- DDP601
        self.count += 1


def main():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    model = DistributedDataParallel(Net().cuda(), device_ids=[local])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    meter = Meter()
    for _ in range(100):
        outputs = model(torch.randn(8, 4).cuda())
        loss = outputs[0]
        optimizer.zero_grad()
        (loss / 2).backward()
        optimizer.step()
        meter.update(loss)
    print(meter.sum / meter.count)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
