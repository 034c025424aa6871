import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Scale(nn.Module):
    def __init__(self, momentum=0.1, equal_batches=True):
        super().__init__()
        self.momentum, self.equal_batches = momentum, equal_batches
        self.register_buffer("running_var", torch.ones(4))

    def forward(self, x):
        number = x.new_tensor([x.shape[0]], dtype=torch.long)
        var = x.detach().square().mean((0, 2))
        if self.training:
            if self.equal_batches:
                number *= dist.get_world_size()
            else:
                dist.all_reduce(number)
            factor = x.shape[0] / float(number.item())
            var_all = var * factor
            dist.all_reduce(var_all)
            count = number.item() * x.shape[-1]
            unbiased = var_all * (float(count) / (count - 1))
            self.running_var.mul_(1 - self.momentum).add_(self.momentum * unbiased)
        return x / self.running_var.sqrt()[None, :, None]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.scale, self.last = nn.Conv1d(3, 4, 3), Scale(), nn.Conv1d(4, 1, 3)

    def forward(self, x):
        return self.last(self.scale(self.first(x))).mean((1, 2))


dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(256, 3, 32), torch.randn(256))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler, drop_last=True)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
