from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint


class Encoder(nn.Module):
    def forward(self, x):
        for _ in range(2):
            x = checkpoint(self.shared, x, use_reentrant=True)  # <-- DDP311
        return x


model = DDP(Encoder())
