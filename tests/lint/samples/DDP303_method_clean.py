from torch.nn.parallel import DistributedDataParallel as DDP


def epoch(model, batches):
    for batch in batches:
        loss = model.module.loss_of(model(batch))
        loss.backward()
        print(model.module.describe())


def either(model, batch):
    loss = model.module.training_loss(batch)
    loss.backward()


def train(net, batches, other):
    model = DDP(net)
    epoch(model, batches)
    either(other, batches)
