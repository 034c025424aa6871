from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, net):
        self.model = DDP(net)

    def step(self, window, loss_of, optimizer):
        with self.model.no_sync():  # <-- DDP314
            for x in window[:-1]:
                loss = loss_of(self.model(x))
                loss.backward()
            loss = loss_of(self.model(window[-1]))
        loss.backward()
        optimizer.step()
