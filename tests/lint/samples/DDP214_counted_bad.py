import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    net = DistributedDataParallel(nn.Linear(3, 1))
    learner = torch.optim.SGD(net.parameters(), lr=0.1)
    rows = TensorDataset(torch.ones(64, 3))
    sampler = DistributedSampler(rows)
    hardest = 0.0
    name = ""
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for (row,) in DataLoader(rows, batch_size=4, sampler=sampler):
            learner.zero_grad()
            loss = net(row).square().mean()
            loss.backward()
            learner.step()
            if loss.item() > hardest:  # <-- DDP214
                hardest = loss.item()
                name = f"net-{epoch}.pt"
                if dist.get_rank() == 0:
                    torch.save(net.module.state_dict(), name)
    print(name)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
