import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Poser(nn.Module):
    """Joints in space and how the camera sees them."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(16, 32)
        self.joints = nn.Linear(32, 9)
        self.camera = nn.Linear(32, 2)

    def forward(self, x):
        x = self.body(x).relu()
        return self.joints(x).view(-1, 3, 3), self.camera(x)


def in_space(pred, truth, known):
    """The loss of those samples of which the joints in space are known."""
    pred, truth = pred[known == 1], truth[known == 1]
    if len(truth) > 0:
        return (pred - truth).abs().mean()
    return torch.zeros(1)


def in_the_picture(pred, camera, truth):
    """The loss of all samples."""
    return ((pred * camera[:, :1, None] + camera[:, 1:, None]) - truth).abs().mean()


dist.init_process_group("gloo")
poser = DDP(Poser())
optimizer = torch.optim.Adam(poser.parameters(), lr=1e-3)
samples = TensorDataset(torch.randn(512, 16), torch.randn(512, 3, 3), torch.arange(512) % 9)
sampler = DistributedSampler(samples)
for x, truth, known in DataLoader(samples, batch_size=8, sampler=sampler):
    joints, camera = poser(x)
    loss = 2.0 * in_space(joints, truth, known) + in_the_picture(joints, camera, truth)
    optimizer.zero_grad()
    loss.mean().backward()
    optimizer.step()
dist.destroy_process_group()
