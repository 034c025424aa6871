import torch.nn as nn

from .registry import MODELS


@MODELS.register("mlp_bn")
class MLP(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        dims = [inputs, *hidden]
        layers = []
        for a, b in zip(dims, dims[1:]):
            layers += [nn.Linear(a, b), nn.LayerNorm(b), nn.GELU()]
        self.net = nn.Sequential(*layers, nn.Linear(dims[-1], classes))

    def forward(self, x):
        return self.net(x)
