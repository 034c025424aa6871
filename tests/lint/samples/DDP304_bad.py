from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, optimizer, k):
    model = DDP(net)
    for i, batch in enumerate(loader):
        loss = model(batch).sum() / k
        loss.backward()  # <-- DDP304
        if (i + 1) % k == 0:
            optimizer.step()
            optimizer.zero_grad()
