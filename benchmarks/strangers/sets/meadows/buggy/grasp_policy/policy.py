import torch
from torch import nn


class DepthEncoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, 8, 5, stride=2), nn.ReLU(), nn.Conv1d(8, 8, 5, stride=2), nn.ReLU(),
            nn.Flatten(), nn.LazyLinear(dim),
        )

    def forward(self, depth):
        return self.net(depth)


class GraspPolicy(nn.Module):
    def __init__(self, dim=32, act=4):
        super().__init__()
        self.depth = DepthEncoder(dim)
        self.joint = nn.Sequential(nn.Linear(7, dim), nn.ReLU())
        self.trunk = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU())
        self.actor = nn.Linear(dim, act)
        self.contact = nn.Linear(dim, 1)

    def forward(self, joint, depth):
        h = self.trunk(torch.cat([self.joint(joint), self.depth(depth)], -1))
        return {"action": self.actor(h), "contact": self.contact(h)}
