import torch
import torch.nn as nn
import torch.nn.functional as F

from .data import N_MELS, VOCAB


class TextToMel(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.encoder = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.decoder = nn.Sequential(nn.Conv1d(2 * dim, dim, 5, padding=2), nn.ReLU(), nn.Conv1d(dim, N_MELS, 1))

    def forward(self, text, n_frames):
        h, _ = self.encoder(self.embed(text))
        h = F.interpolate(h.transpose(1, 2), size=n_frames, mode="linear")
        return self.decoder(h).transpose(1, 2)


def masked_l1(pred, target, frames):
    mask = torch.arange(pred.shape[1]).unsqueeze(0) < frames.unsqueeze(1)
    return ((pred - target).abs().mean(-1) * mask).sum() / mask.sum()
