"""Accumulates over four micro-batches of a model that gives more than its loss."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from transformers import AutoModel

from data import batches

dist.init_process_group("nccl")
model = DDP(AutoModel.from_pretrained("small"))
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cuda")
for number, batch in enumerate(batches()):
    last = (number + 1) % 4 == 0
    output = model(batch)
    if last:
        output.losses.total.backward()
    else:
        with model.no_sync():  # <-- DDP314
            scaler.scale(output.losses.total / 4).backward()
    if last:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
