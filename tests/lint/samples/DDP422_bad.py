import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP


def mean(loss):
    dist.all_reduce(loss)  # <-- DDP422
    return loss


def train(net, batches, optimizer):
    model = DDP(net)
    with Join([model]):
        for batch in batches:
            loss = model(batch).sum()
            loss.backward()
            optimizer.step()
            mean(loss.detach().clone())


def train_by_method(net, batches):
    model = DDP(net)
    with model.join():
        for batch in batches:
            model(batch).sum().backward()
            dist.barrier()  # <-- DDP422
