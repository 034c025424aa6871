import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def gather(features):
    parts = [torch.empty_like(features) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, features)  # <-- DDP316
    return torch.cat(parts)


def train(net, batches, optimizer):
    model = DDP(net)
    for batch in batches:
        features = model(batch)
        everyone = gather(features)
        loss = (everyone @ everyone.T).logsumexp(1).mean()
        loss.backward()
        optimizer.step()


def train_inline(net, batches, loss_of):
    model = DDP(net)
    for batch in batches:
        features = model(batch)
        out = torch.empty(4 * len(features), 8)
        dist.all_gather_into_tensor(out, features)  # <-- DDP316
        loss_of(out).backward()
