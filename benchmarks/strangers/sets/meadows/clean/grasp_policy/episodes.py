import torch
from torch.utils.data import Dataset


class GraspEpisodes(Dataset):
    """Scripted demonstrations: proprioception, a depth strip and the taken action."""

    def __init__(self, episodes=32, steps=16, seed=0):
        g = torch.Generator().manual_seed(seed)
        n = episodes * steps
        self.joint = torch.randn(n, 7, generator=g)
        self.depth = torch.rand(n, 1, 32, generator=g)
        gain = torch.randn(7, 4, generator=g)
        self.action = torch.tanh(self.joint @ gain + self.depth.mean(-1) - 0.5)
        self.contact = (self.depth.amin(-1) < 0.02).float()

    def __len__(self):
        return len(self.joint)

    def __getitem__(self, i):
        return {
            "joint": self.joint[i],
            "depth": self.depth[i],
            "action": self.action[i],
            "contact": self.contact[i],
        }
