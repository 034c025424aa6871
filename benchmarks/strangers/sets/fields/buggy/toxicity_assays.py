# %% Toxicity assays, exported from a notebook
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()
is_main = rank == 0
torch.manual_seed(2)

# %% data
descriptors = torch.randn(512, 30)
rule = torch.randn(30, 6)
assays = (descriptors @ rule + 0.5 * torch.randn(512, 6) > 0).float()
train_set = TensorDataset(descriptors[:384], assays[:384])
held_out = TensorDataset(descriptors[384:], assays[384:])
sampler = DistributedSampler(train_set)
train_loader = DataLoader(train_set, batch_size=32, sampler=sampler)
test_loader = DataLoader(held_out, batch_size=64)

# %% model
net = nn.Sequential(
    nn.Linear(30, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1),
    nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(),
    nn.Linear(64, 6),
)
net = DDP(net)
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
bce = nn.BCEWithLogitsLoss()


# %% helpers
@torch.no_grad()
def assay_accuracy(model, loader):
    model.eval()
    right = total = 0
    for x, y in loader:
        right += ((model(x) > 0).float() == y).sum().item()
        total += y.numel()
    model.train()
    return right / total


# %% train
for epoch in range(4):
    sampler.set_epoch(epoch)
    for x, y in train_loader:
        loss = bce(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    if is_main:
        print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)

# %% final numbers
if is_main:
    print(f"held-out accuracy {assay_accuracy(net, test_loader):.3f}", flush=True)
dist.barrier()
dist.destroy_process_group()
