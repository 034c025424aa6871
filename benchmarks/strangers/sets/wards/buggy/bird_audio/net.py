from torch import nn


class BirdNet(nn.Module):
    """Trunk as it comes from pre-training, fresh head."""

    def __init__(self, species=8):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv1d(20, 32, 5, stride=2), nn.ReLU(), nn.Conv1d(32, 32, 5, stride=2), nn.ReLU(), nn.Conv1d(32, 32, 3), nn.ReLU())
        self.head = nn.Linear(32, species)

    def forward(self, x):
        return self.head(self.trunk(x).mean(-1))


def set_trainable(module, prefixes, flag=True):
    touched = []
    for name, p in module.named_parameters():
        if any(name.startswith(q) for q in prefixes):
            p.requires_grad_(flag)
            touched.append(p)
    return touched
