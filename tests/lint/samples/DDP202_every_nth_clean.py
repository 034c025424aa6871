import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, paths, first=0, every=1, most=None):
        super().__init__()
        self.paths = paths[first:][::every][:most]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.load(self.paths[index])


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    model = DDP(torch.nn.Linear(2, 2).cuda(local_rank), device_ids=[local_rank])
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    paths = sorted(os.listdir("images"))
    images = Images(paths, first=dist.get_rank(), every=dist.get_world_size(), most=1000)
    loader = DataLoader(images, batch_size=4, shuffle=True, drop_last=True)
    for epoch in range(10):
        for batch in loader:
            opt.zero_grad()
            model(batch.cuda(local_rank)).sum().backward()
            opt.step()


main()
