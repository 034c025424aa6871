from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.main, self.extra = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, scale=None):
        y = self.main(x) if scale is None else self.main(x * scale)
        return self.extra(y)


model = DDP(Heads(), static_graph=True)


class Tasks(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.trunk = nn.Linear(4, 4)
        self.heads = nn.ModuleDict({name: nn.Linear(4, 1) for name in names})

    def forward(self, x, task):
        h = self.trunk(x)
        return {name: self.heads[name](h) for name in self.heads}[task]


tasks = DDP(Tasks(["depth", "normals"]), static_graph=True)
