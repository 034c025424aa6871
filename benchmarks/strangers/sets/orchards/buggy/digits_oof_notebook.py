# %% [markdown]
# # Digits baseline - 3 folds, MLP, 2 processes
# exported from notebook

# %%
import os, gc, time, random
import numpy as np
import torch, torch.nn as nn, torch.nn.functional as F
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import accuracy_score
from torch.utils.data import Dataset, DataLoader, DistributedSampler

# %%
class CFG:
    seed = 2023
    n_fold = 3
    epochs = 4
    train_bs = 32
    valid_bs = 64
    lr = 3e-3
    wd = 1e-4
    num_classes = 10
    out = 'oof_out'

# %%
dist.init_process_group('gloo')
RANK = dist.get_rank()
WORLD = dist.get_world_size()

def log(*a):
    if RANK == 0:
        print(*a, flush=True)

def seed_all(s):
    random.seed(s); np.random.seed(s); torch.manual_seed(s)

seed_all(CFG.seed)

# %%
X, y = load_digits(return_X_y=True)
X = (X / 16.).astype('float32')
log('train shape', X.shape)

class DigitDS(Dataset):
    def __init__(self, idx, aug=False):
        self.idx, self.aug = idx, aug
    def __len__(self):
        return len(self.idx)
    def __getitem__(self, i):
        x = torch.from_numpy(X[self.idx[i]])
        if self.aug:
            x = x + 0.05 * torch.randn_like(x)
        return x, int(y[self.idx[i]])

# %%
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seq = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(.2),
                                 nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, CFG.num_classes))
    def forward(self, x):
        return self.seq(x)

# %%
def train_fn(model, loader, opt, sched):
    model.train()
    tot = 0.
    for xb, yb in loader:
        loss = F.cross_entropy(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        tot += loss.item()
    return tot / len(loader)

@torch.no_grad()
def predict_fn(model, loader):
    model.eval()
    out = [model(xb).softmax(1) for xb, _ in loader]
    return torch.cat(out)

def gather_preds(local, n):
    bufs = [torch.zeros_like(local) for _ in range(WORLD)]
    dist.all_gather(bufs, local)
    full = torch.cat(bufs, dim=0)
    return full[:n].numpy()

# %%
def run_fold(fold, tr_idx, va_idx):
    seed_all(CFG.seed + fold)
    tr_ds, va_ds = DigitDS(tr_idx, aug=True), DigitDS(va_idx)
    tr_sampler = DistributedSampler(tr_ds, shuffle=True, seed=CFG.seed)
    tr = DataLoader(tr_ds, CFG.train_bs, sampler=tr_sampler)
    va = DataLoader(va_ds, CFG.valid_bs, sampler=DistributedSampler(va_ds, shuffle=False))
    model = nn.parallel.DistributedDataParallel(Net())
    opt = torch.optim.AdamW(model.parameters(), lr=CFG.lr, weight_decay=CFG.wd)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, CFG.lr, total_steps=CFG.epochs * len(tr))
    for ep in range(CFG.epochs):
        tr_sampler.set_epoch(ep)
        l = train_fn(model, tr, opt, sched)
        log(f'fold {fold} ep {ep} loss {l:.4f}')
    preds = gather_preds(predict_fn(model, va), len(va_ds))
    del model, opt; gc.collect()
    return preds

# %%
oof = np.zeros((len(X), CFG.num_classes), dtype='float32')
skf = StratifiedKFold(CFG.n_fold, shuffle=True, random_state=CFG.seed)
for fold, (tr_idx, va_idx) in enumerate(skf.split(X, y)):
    oof[va_idx] = run_fold(fold, tr_idx, va_idx)

# %%
log('OOF ACC:', accuracy_score(y, oof.argmax(1)))
if RANK == 0:
    os.makedirs(CFG.out, exist_ok=True)
    np.save(f'{CFG.out}/oof.npy', oof)
dist.barrier()
dist.destroy_process_group()
