from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


def train(net, data, optimizer):
    model = DDP(net)
    loader = DataLoader(data, batch_size=8, shuffle=True)  # <-- DDP202
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
