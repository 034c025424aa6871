from contextlib import nullcontext

from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, optimizer, k):
    model = DDP(net)
    for i, batch in enumerate(loader):
        last = (i + 1) % k == 0
        with nullcontext() if last else model.no_sync():
            loss = model(batch).sum() / k
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()


def train_in_windows(net, stream, optimizer, steps, window):
    model = DDP(net)
    for _ in range(steps):
        optimizer.zero_grad()
        for micro in range(window):
            model.require_backward_grad_sync = micro == window - 1
            (model(next(stream)).mean() / window).backward()
        optimizer.step()


def train_a_critic(critic, net, stream, optimizer, steps):
    model, judge = DDP(net), DDP(critic)
    for _ in range(steps):
        for _ in range(5):
            optimizer[1].zero_grad()
            judge(next(stream)).mean().backward()
            optimizer[1].step()
        optimizer[0].zero_grad()
        parts = model(next(stream))
        for part in (parts.mean() + parts.square().mean(),):
            part.backward(retain_graph=True)
        optimizer[0].step()


class Agent:
    def __init__(self, net):
        self.net = DDP(net)

    def loss(self, batch):
        return self.net(batch).mean()


def train_several(one, other, stream, optimizer, steps):
    """Each model has one batch before a step."""
    models, agents = [DDP(one), DDP(other)], [Agent(each) for each in (one, other)]
    for _ in range(steps):
        optimizer.zero_grad()
        for model in models:
            model(next(stream)).mean().backward()
        for number in range(2):
            models[number](next(stream)).mean().backward()
        for _, agent in enumerate(agents):
            agent.loss(next(stream)).backward()
        optimizer.step()
