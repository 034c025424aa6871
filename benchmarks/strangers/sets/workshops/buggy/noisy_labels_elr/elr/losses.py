"""Early learning regularisation (Liu et al. 2020): a running target for each training sample."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ELR(nn.Module):
    def __init__(self, samples, classes, beta=0.7, weight=3.0):
        super().__init__()
        self.target = torch.zeros(samples, classes)
        self.beta, self.weight = beta, weight

    def update(self, index, prob):
        self.target[index] = self.beta * self.target[index] + (1 - self.beta) * prob / prob.sum(1, keepdim=True)

    def forward(self, index, logits, label):
        prob = F.softmax(logits, 1).clamp(1e-4, 1 - 1e-4)
        self.update(index, prob.detach())
        reg = (1 - (self.target[index] * prob).sum(1)).log().mean()
        return F.cross_entropy(logits, label) + self.weight * reg
