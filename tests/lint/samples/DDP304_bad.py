from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, optimizer, k):
    model = DDP(net)
    for i, batch in enumerate(loader):
        loss = model(batch).sum() / k
        loss.backward()  # <-- DDP304
        if (i + 1) % k == 0:
            optimizer.step()
            optimizer.zero_grad()


def train_in_windows(net, stream, optimizer, steps, window):
    model = DDP(net)
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(window):
            loss = model(next(stream)).mean() / window
            loss.backward()  # <-- DDP304
        optimizer.step()


def train_one_after_another(one, other, stream, optimizer, steps):
    for model in [DDP(one), DDP(other)]:
        for _ in range(steps):
            optimizer.zero_grad()
            for batch in next(stream):
                model(batch).mean().backward()  # <-- DDP304
            optimizer.step()
