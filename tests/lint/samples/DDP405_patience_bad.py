from torch.nn.parallel import DistributedDataParallel


def evaluate(model, loader):
    return sum(float(model.module(batch).sum()) for batch in loader)


def train_epoch(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()


def train(net, loader, held_out, optimizer):
    model = DistributedDataParallel(net)
    best, patience = float("inf"), 0
    for _ in range(100):
        train_epoch(model, loader, optimizer)
        val_loss = evaluate(model, held_out)
        if val_loss < best:
            best, patience = val_loss, 0
        else:
            patience += 1
        if patience > 5:  # <-- DDP405
            break
