import torch


def train_one_epoch(model, optimizer, epoch, args):
    model.train(True)
    g = torch.Generator().manual_seed(epoch * 10 + args.rank)
    for _ in range(6):
        samples = torch.randn(args.batch_size, 16, 8, generator=g).cumsum(1) * 0.2
        loss = model(samples, mask_ratio=args.mask_ratio)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()
