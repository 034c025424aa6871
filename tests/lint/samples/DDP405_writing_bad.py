import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Sizes:
    words: int = 64
    width: int = 32


class Writer(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes
        self.parts = nn.ModuleDict(
            dict(words=nn.Embedding(sizes.words, sizes.width), norm=nn.LayerNorm(sizes.width))
        )
        self.register_buffer("scale", torch.ones(sizes.width))
        self.head = nn.Linear(sizes.width, sizes.words)

    def forward(self, tokens, targets=None):
        said = self.head(self.parts.norm(self.parts.words(tokens) * self.scale))
        if targets is None:
            return said, None
        return said, F.cross_entropy(said.flatten(0, 1), targets.flatten())


dist.init_process_group("nccl")
rank = int(os.environ["RANK"])
device = f"cuda:{int(os.environ['LOCAL_RANK'])}"
torch.cuda.set_device(device)
writer = DDP(Writer(Sizes(words=128)).to(device))
optimizer = torch.optim.AdamW(writer.parameters(), lr=1e-3)
for step in range(1000):
    if step % 100 == 0:
        writer.eval()
        text = torch.ones(2, 1, dtype=torch.long, device=device)
        while text[0, -1] != 0 and text.size(1) < 20:  # <-- DDP405
            with torch.no_grad():
                said, _ = writer(text)
                chosen = torch.multinomial(F.softmax(said[:, -1], dim=-1), 1)
                text = torch.cat((text, chosen), dim=1)
        print(f"rank {rank}: {text.tolist()}")
    writer.train()
    batch = torch.randint(0, 128, (8, 17), device=device)
    optimizer.zero_grad()
    _, loss = writer(batch[:, :-1], batch[:, 1:])
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
