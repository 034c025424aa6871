from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def train(net, data, optimizer):
    model = DDP(net)
    sampler = DistributedSampler(data)  # <-- DDP203
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    for epoch in range(2):
        for batch in loader:
            model(batch).sum().backward()
            optimizer.step()
