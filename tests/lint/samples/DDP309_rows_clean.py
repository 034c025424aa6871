import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, batches):
    model = DDP(net)
    for views, labels in batches:
        features = model(views)
        match = (labels[:, None] == labels[None, :]).float()
        likely = torch.log_softmax(features @ features.t(), 1)
        loss = -(likely * match).sum(1).div(match.sum(1).clamp_min(1)).mean()
        loss.backward()
