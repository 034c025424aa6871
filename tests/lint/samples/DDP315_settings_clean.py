"""A trainer that is told by its settings over how many batches it adds up."""

from contextlib import nullcontext


class Trainer:
    def __init__(self, use_ddp=False, **settings):
        self.use_ddp = use_ddp
        self.window = settings.get("window", 1)

    def train(self, model, optimizer, batches):
        for number, batch in enumerate(batches):
            context = nullcontext
            if self.use_ddp:
                context = model.no_sync if (number + 1) % self.window != 0 else context
            with context():
                loss = model(batch).sum() / self.window
                loss.backward()
            if (number + 1) % self.window == 0:
                optimizer.step()
                optimizer.zero_grad()
