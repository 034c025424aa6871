import torch


def seismic_traces(count, length=64, seed=0):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(length).float()
    onset = torch.randint(8, length // 2, (count, 1), generator=g)
    freq = 0.2 + 0.4 * torch.rand(count, 1, generator=g)
    env = torch.exp(-(t - onset).clamp(min=0) / 15) * (t >= onset)
    return (env * torch.sin(freq * (t - onset))).unsqueeze(1)
