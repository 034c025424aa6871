import torch.nn as nn


class ConvBnAct(nn.Sequential):
    def __init__(self, i, o, s=1):
        super().__init__(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


def create_model(width=16, num_classes=8):
    return nn.Sequential(
        ConvBnAct(3, width), ConvBnAct(width, width, 2), ConvBnAct(width, 2 * width, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, num_classes),
    )
