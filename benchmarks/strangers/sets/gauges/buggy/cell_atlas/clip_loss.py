"""Symmetric InfoNCE between two modalities."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

from collect import all_embeddings


class PairLoss(torch.nn.Module):
    def __init__(self, temperature=0.2):
        super().__init__()
        self.temperature = temperature

    def forward(self, rna, protein):
        rna, protein = F.normalize(rna, dim=1), F.normalize(protein, dim=1)
        n = len(rna)
        target = torch.arange(n) + n * dist.get_rank()
        to_protein = rna @ all_embeddings(protein).T / self.temperature
        to_rna = protein @ all_embeddings(rna).T / self.temperature
        return (F.cross_entropy(to_protein, target) + F.cross_entropy(to_rna, target)) / 2
