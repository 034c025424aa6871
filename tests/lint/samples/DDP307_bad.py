import math

from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, optimizer, loss_of):
    model = DDP(net)
    for batch in loader:
        loss = loss_of(model(batch))
        loss.backward()
        if math.isnan(loss.item()):
            continue  # <-- DDP307
        optimizer.step()


def train_on(net, loader, optimizer):
    model = DDP(net)
    for batch in loader:
        try:
            model(batch).sum().backward()
        except RuntimeError:
            optimizer.zero_grad()
            continue  # <-- DDP307
        optimizer.step()
