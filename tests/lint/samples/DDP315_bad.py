from contextlib import nullcontext


def train(model, loader, optimizer, k):
    for i, batch in enumerate(loader):
        context = nullcontext() if i % k == 0 else model.no_sync()
        with context:
            model(batch).sum().backward()
        if (i + 1) % k == 0:  # <-- DDP315
            optimizer.step()
            optimizer.zero_grad()
