import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, batches, loss_of):
    model = DDP(net)
    for tokens in batches:
        mask = torch.arange(len(tokens)) < dist.get_rank() + 3
        losses = loss_of(model(tokens))
        loss = (losses * mask).sum() / mask.sum()  # <- DDP309
        loss.backward()
