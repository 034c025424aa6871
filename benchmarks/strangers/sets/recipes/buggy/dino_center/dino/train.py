import torch
from torch.nn.parallel import DistributedDataParallel

import utils


def train(student, teacher, criterion, steps=30):
    teacher.load_state_dict(student.state_dict())
    teacher.requires_grad_(False)
    student = DistributedDataParallel(student)
    opt = torch.optim.AdamW(student.parameters(), lr=2e-3)
    momentum = utils.cosine_scheduler(0.98, 1.0, steps)
    g = torch.Generator().manual_seed(utils.get_rank())
    for it in range(steps):
        x = torch.randn(16, 8, generator=g) + utils.get_rank()
        crops = [x + 0.1 * torch.randn(x.shape, generator=g) for _ in range(2)]
        loss = criterion(student(crops[0]), teacher(crops[1]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for p, q in zip(student.module.parameters(), teacher.parameters()):
                q.lerp_(p, 1 - momentum[it])
    print(f"rank {utils.get_rank()} loss {loss.item():.4f} center {[round(c, 3) for c in criterion.center[0, :3].tolist()]}", flush=True)
