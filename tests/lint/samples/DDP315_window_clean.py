from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, batches, optimizer, total):
    model = DDP(net)
    for i, batch in enumerate(batches):
        full = (i + 1) % 4 == 0 or i + 1 == total
        if full:
            model(batch).sum().backward()
        else:
            with model.no_sync():
                model(batch).sum().backward()
        if full:
            optimizer.step()


def train_by_flag(net, steps, optimizer, batch):
    model = DDP(net)
    for i in range(steps):
        model.require_backward_grad_sync = i == steps - 1
        model(batch).sum().backward()
    optimizer.step()
