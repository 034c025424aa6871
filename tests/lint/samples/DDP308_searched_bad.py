import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Body(nn.Module):
    """A mesh, now and then smoothed, and its joints."""

    def __init__(self):
        super().__init__()
        self.coarse = nn.Linear(16, 24)
        self.smooth = nn.Linear(24, 24)
        self.joints = nn.Linear(16, 9)

    def forward(self, x):
        mesh = self.coarse(x)
        if torch.rand(()) < 0.5:
            mesh = self.smooth(mesh)
        return mesh, self.joints(x)


def of_meshes(pred, truth, known):
    pred, truth = pred[known == 1], truth[known == 1]
    if len(truth) > 0:
        return (pred - truth).abs().mean()
    return torch.zeros(1)  # <-- DDP308


dist.init_process_group("gloo")
body = DistributedDataParallel(Body(), find_unused_parameters=True)
optimizer = torch.optim.Adam(body.parameters(), lr=1e-3)
samples = TensorDataset(torch.randn(512, 16), torch.randn(512, 24), torch.arange(512) % 9)
for x, truth, known in DataLoader(samples, batch_size=8, sampler=DistributedSampler(samples)):
    mesh, joints = body(x)
    loss = 2.0 * of_meshes(mesh, truth, known)
    optimizer.zero_grad()
    loss.mean().backward()
    optimizer.step()
dist.destroy_process_group()
