from contextlib import nullcontext


def train(model, loader, optimizer, k):
    for i, batch in enumerate(loader):
        context = nullcontext() if i % k == 0 else model.no_sync()  # <-- DDP315
        with context:
            model(batch).sum().backward()
        if (i + 1) % k == 0:
            optimizer.step()
            optimizer.zero_grad()
