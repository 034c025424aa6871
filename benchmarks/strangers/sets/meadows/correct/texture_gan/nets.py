from torch import nn


def painter(latent=8):
    return nn.Sequential(nn.Linear(latent, 48), nn.ReLU(), nn.Linear(48, 64), nn.Tanh())


def critic():
    return nn.Sequential(nn.Linear(64, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
