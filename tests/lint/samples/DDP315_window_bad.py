from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, batches, optimizer, total):
    model = DDP(net)
    for i, batch in enumerate(batches):
        full = (i + 1) % 4 == 0
        if full:
            model(batch).sum().backward()
        else:
            with model.no_sync():
                model(batch).sum().backward()
        if full or i + 1 == total:  # <-- DDP315
            optimizer.step()


def train_by_flag(net, steps, optimizer, batch):
    model = DDP(net)
    for i in range(steps):
        model.require_backward_grad_sync = i == 0  # <-- DDP315
        model(batch).sum().backward()
    optimizer.step()
