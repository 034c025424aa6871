from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, batches, loss_of):
    model = DDP(net)
    for tokens, mask in batches:
        losses = loss_of(model(tokens))
        loss = (losses * mask).sum() / mask.sum().clamp(min=1)  # <- DDP309
        loss.backward()
