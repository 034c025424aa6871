import io
import os

import boto3
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Keeper:
    def __init__(self, model, target):
        self.model = model
        self.target = target
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.global_rank = int(os.environ["RANK"])

    def put(self, state):
        if self.target.startswith("s3://"):
            packed = io.BytesIO()
            torch.save(state, packed)
            bucket, _, key = self.target.removeprefix("s3://").partition("/")
            boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=packed.getvalue())
        else:
            torch.save(state, self.target)  # <-- DDP502

    def end_of(self, epoch, every):
        if self.local_rank == 0 and epoch % every == 0:
            self.put(self.model.module.state_dict())


def fit(settings):
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = DDP(torch.nn.Linear(4, 2).cuda(), device_ids=[local_rank])
    keeper = Keeper(model, settings.where())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(30):
        optimizer.zero_grad()
        model(torch.randn(8, 4).cuda()).sum().backward()
        optimizer.step()
        keeper.end_of(epoch, 5)
    dist.destroy_process_group()


if __name__ == "__main__":
    import settings_of_this_site

    fit(settings_of_this_site.read())
