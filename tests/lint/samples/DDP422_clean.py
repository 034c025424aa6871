import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, batches, optimizer):
    model = DDP(net)
    with Join([model]):
        for batch in batches:
            loss = model(batch).sum()
            loss.backward()
            optimizer.step()
    dist.all_reduce(loss)


def train_and_fail_together(net, batches):
    model = DDP(net)
    with Join([model], throw_on_early_termination=True):
        for batch in batches:
            model(batch).sum().backward()
            dist.barrier()
