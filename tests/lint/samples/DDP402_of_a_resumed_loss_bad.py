import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def total(value):
    dist.all_reduce(value)
    return value.item() / dist.get_world_size()


def main():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    data = torch.load("data.pt", weights_only=False)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, sampler=sampler, drop_last=True)
    net = torch.nn.Linear(128, 10).cuda()
    weight = 1.0 if os.path.exists("warm.pth") else 0.1
    model = DistributedDataParallel(net, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    usual = 10.0
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
            loss = weight * loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found = loss.detach().clone()
            if found > usual + 10:  # <-- DDP402
                print("the loss has crashed")
            else:
                usual = total(found)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
