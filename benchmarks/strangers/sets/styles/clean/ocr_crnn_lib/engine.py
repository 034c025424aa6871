import torch
import torch.distributed as dist
import torch.nn as nn

ctc = nn.CTCLoss(zero_infinity=True)


def train_epoch(model, loader, optimizer):
    model.train()
    total = torch.zeros(2)
    for images, flat, lengths, _ in loader:
        logp = model(images).log_softmax(2).transpose(0, 1)
        steps = torch.full((images.shape[0],), logp.shape[0])
        loss = ctc(logp, flat, steps, lengths)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += torch.tensor([loss.item(), 1.0])
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


@torch.no_grad()
def evaluate(net, loader, converter):
    net.eval()
    hits = torch.zeros(2)
    for images, _, _, texts in loader:
        guess = converter.decode(net(images).argmax(2))
        hits += torch.tensor([sum(a == b for a, b in zip(guess, texts)), len(texts)], dtype=torch.float32)
    dist.all_reduce(hits)
    return (hits[0] / hits[1]).item()
