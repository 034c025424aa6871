from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def train(net, data, optimizer):
    model = DDP(net)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for batch in loader:
            model(batch).sum().backward()
            optimizer.step()


def train_once(net, data, optimizer):
    model = DDP(net)
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    for _ in range(1):
        for batch in loader:
            model(batch).sum().backward()
            optimizer.step()
