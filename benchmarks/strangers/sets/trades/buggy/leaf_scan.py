# Leaf disease scanner, exported from a notebook (cells are marked by #%%).
# run: torchrun --nproc_per_node=2 leaf_scan.py

#%% imports
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

#%% process group
dist.init_process_group("gloo")
RANK, WORLD = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)

#%% data: green leaves with brown spots (class 1), stripes (class 2) or nothing (0)
def make_leaves(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 3, 16, 16, generator=g) * 0.2
    x[:, 1] += 0.5
    y = torch.randint(0, 3, (n,), generator=g)
    for i in range(n):
        if y[i] == 1:
            for _ in range(4):
                r, c = torch.randint(0, 14, (2,), generator=g).tolist()
                x[i, 0, r:r + 2, c:c + 2] += 0.5
        elif y[i] == 2:
            r = torch.randint(0, 14, (1,), generator=g).item()
            x[i, 0, r:r + 2, :8] += 0.5
    return TensorDataset(x, y)


train_set, test_set = make_leaves(320, 1), make_leaves(96, 2)
train_sampler = DistributedSampler(train_set, shuffle=True, drop_last=True)
train_loader = DataLoader(train_set, batch_size=16, sampler=train_sampler)
test_loader = DataLoader(test_set, batch_size=16, sampler=DistributedSampler(test_set, shuffle=False))

#%% model
class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 12, 3, padding=1)
        self.c2 = nn.Conv2d(12, 24, 3, stride=2, padding=1)
        self.c3 = nn.Conv2d(24, 24, 3, stride=2, padding=1)
        self.fc = nn.Linear(24 * 16, 3)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        x = F.relu(self.c3(x))
        return self.fc(x.flatten(1))


model = LeafNet()
for p in model.parameters():
    dist.broadcast(p.data, src=0)
# channels_last is a good deal faster for convolutions
model = model.to(memory_format=torch.channels_last)

optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)

#%% gradients are averaged by hand, DDP needs too much memory on our box
def average_gradients(module):
    for p in module.parameters():
        if p.grad is None:
            continue
        # gloo wants dense memory
        dist.all_reduce(p.grad.contiguous())
        p.grad /= WORLD


#%% evaluation
@torch.no_grad()
def accuracy():
    model.eval()
    hit = torch.zeros(2)
    for x, y in test_loader:
        pred = model(x.to(memory_format=torch.channels_last)).argmax(1)
        hit += torch.tensor([(pred == y).sum().item(), len(y)])
    dist.all_reduce(hit)
    model.train()
    return (hit[0] / hit[1]).item()


#%% training
for epoch in range(5):
    train_sampler.set_epoch(epoch)
    for x, y in train_loader:
        x = x.to(memory_format=torch.channels_last)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        optimizer.step()
    acc = accuracy()
    if RANK == 0:
        print(f"epoch {epoch} loss {loss.item():.3f} test acc {acc:.3f}", flush=True)

#%% done
dist.barrier()
dist.destroy_process_group()
