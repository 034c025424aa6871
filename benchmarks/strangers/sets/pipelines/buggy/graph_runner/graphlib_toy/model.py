from torch import nn


class GraphNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embed = nn.Linear(6, hidden)
        self.update = nn.Linear(hidden, hidden)
        self.readout = nn.Linear(hidden, 1)

    def forward(self, nodes, adj):
        h = self.embed(nodes).relu()
        h = (adj @ self.update(h)).relu()
        return self.readout(h.mean(1)).squeeze(-1)


def build_model(hidden):
    return GraphNet(hidden)
