from contextlib import nullcontext


def train(model, loader, optimizer, k):
    for i, batch in enumerate(loader):
        context = model.no_sync() if (i + 1) % k != 0 else nullcontext()
        with context:
            model(batch).sum().backward()
        if (i + 1) % k == 0:
            optimizer.step()
            optimizer.zero_grad()


def train_last(model, loader, optimizer, k):
    for i, batch in enumerate(loader):
        with model.no_sync() if i % k != k - 1 else nullcontext():
            model(batch).sum().backward()
        if not (i + 1) % k:
            optimizer.step()
