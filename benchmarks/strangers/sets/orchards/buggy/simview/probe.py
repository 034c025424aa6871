import torch
import torch.nn.functional as F

from dist_utils import concat_all_gather


@torch.no_grad()
def knn_accuracy(encoder, loader, k=5):
    encoder.eval()
    feats, labels = [], []
    for x, y in loader:
        feats.append(F.normalize(encoder.features(x), dim=1))
        labels.append(y)
    f, y = concat_all_gather(torch.cat(feats)), concat_all_gather(torch.cat(labels))
    encoder.train()
    order = torch.randperm(len(f), generator=torch.Generator().manual_seed(0))
    tr, te = order.chunk(2)
    near = (f[te] @ f[tr].t()).topk(k, dim=1).indices
    vote = y[tr][near].mode(dim=1).values
    return (vote == y[te]).float().mean().item()
