import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from tqdm import tqdm


def count_right(model, loader):
    right = torch.zeros(1)
    batches = tqdm(loader) if dist.get_rank() == 0 else iter(())
    for number, (x, y) in enumerate(batches):
        with torch.no_grad():
            right += (model(x).argmax(1) == y).sum()  # <-- DDP406
        if number == 0:
            print("first batch of", len(loader))
    dist.all_reduce(right)
    return right


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.ones(64, 4), torch.zeros(64))
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    model = DistributedDataParallel(net).eval()
    sampler = DistributedSampler(data, shuffle=False, drop_last=True)
    loader = DataLoader(data, sampler=sampler, batch_size=4)
    print(count_right(model, loader))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
