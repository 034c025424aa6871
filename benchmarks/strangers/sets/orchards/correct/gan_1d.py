# my first GAN on two processes :)
# run: torchrun --standalone --nproc-per-node=2 gan_1d.py
# target is a gaussian with mean 3 and std 0.5
import torch
import torch.nn as nn
import torch.distributed as dist
import os, math

dist.init_process_group('gloo')
rank = dist.get_rank()
world = dist.get_world_size()

torch.manual_seed(1)
Z = 4
STEPS = 250
BATCH = 128

class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Sequential(nn.Linear(Z, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    def forward(self, z):
        return self.l(z)

class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Sequential(nn.Linear(1, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    def forward(self, x):
        return self.l(x)

gen = nn.parallel.DistributedDataParallel(G())
dis = nn.parallel.DistributedDataParallel(D())
g_opt = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.99))
d_opt = torch.optim.Adam(dis.parameters(), lr=1e-3, betas=(0.5, 0.99))
bce = nn.BCEWithLogitsLoss()

# from here on every process must see its own noise
torch.manual_seed(1000 + 13 * rank)

def real_batch():
    return torch.randn(BATCH, 1) * 0.5 + 3.0

ones = torch.ones(BATCH, 1)
zeros = torch.zeros(BATCH, 1)

for step in range(STEPS):
    # --- discriminator: the fake samples need no gradient, so skip the wrapper
    with torch.no_grad():
        fake = gen.module(torch.randn(BATCH, Z))
    both = torch.cat([real_batch(), fake])
    d_loss = bce(dis(both), torch.cat([ones, zeros]))
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()

    # --- generator: through the frozen discriminator
    for p in dis.parameters():
        p.requires_grad_(False)
    g_loss = bce(dis.module(gen(torch.randn(BATCH, Z))), ones)
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    for p in dis.parameters():
        p.requires_grad_(True)

    if step % 50 == 0 and rank == 0:
        print('step', step, 'D', round(d_loss.item(), 3), 'G', round(g_loss.item(), 3), flush=True)

with torch.no_grad():
    s = gen.module(torch.randn(2000, Z))
stats = torch.stack([s.sum(), (s ** 2).sum(), torch.tensor(2000.0)])
dist.reduce(stats, 0)
if rank == 0:
    m = stats[0] / stats[2]
    print('mean %.3f (want 3.0)  std %.3f (want 0.5)' % (m, math.sqrt(stats[1] / stats[2] - m * m)))
    os.makedirs('gan_out', exist_ok=True)
    torch.save({'G': gen.module.state_dict(), 'D': dis.module.state_dict()}, 'gan_out/final.pt')
dist.barrier()
dist.destroy_process_group()
