from torch import nn


class Small(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.body = nn.Linear(8, width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.body(x).relu())


def small(**settings):
    return Small(64, **settings)


def large(**settings):
    return Small(1024, **settings)


def of_sum(model, rows):
    return model(rows).sum()


def of_max(model, rows):
    return model(rows).max()


def of_mean(model, rows):
    return model(rows).mean()


def of_least(model, rows):
    return model(rows).min()


def of_power(model, rows):
    return model(rows).square().mean()
