from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, loss_of, optimizer):
    model = DDP(net)
    for x, y in loader:
        loss = loss_of(model.module(x), y)  # <-- DDP303
        loss.backward()
        optimizer.step()


def train_inner(net, loader, loss_of, optimizer):
    wrapped = DDP(net)
    for x, y in loader:
        loss_of(net(x), y).backward()  # <-- DDP303
        optimizer.step()
    return wrapped
