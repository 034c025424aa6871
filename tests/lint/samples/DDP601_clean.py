import torch.distributed as dist


def train(model, loader, optimizer, criteria):
    total = 0.0
    for batch in loader:
        loss = 0
        for criterion in criteria:
            loss += criterion(model(batch))
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total, dist.get_rank()
