from torch.nn.parallel import DistributedDataParallel as DDP


def epoch(model, batches):
    for batch in batches:
        loss = model.module.training_loss(batch)  # <-- DDP303
        loss.backward()


def train(net, batches):
    epoch(DDP(net), batches)
    model = DDP(net)
    epoch(model, batches)
