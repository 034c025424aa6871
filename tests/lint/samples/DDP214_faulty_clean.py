import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def save_on_first(state, path):
    if dist.get_rank() == 0:
        torch.save(state, path)


def main():
    dist.init_process_group("nccl")
    device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = DDP(nn.Linear(4, 1).to(device), device_ids=[device.index])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            out = model(x.to(device))
            loss = ((out - y.to(device)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if torch.isnan(out).any() or torch.isinf(out).any():
                state = {"model": model.module.state_dict(), "out": out.detach(), "epoch": epoch}
                save_on_first(state, "NaN.pth")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
