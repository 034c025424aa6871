"""Soil carbon from spectra with accelerate; any process may ask for the end of training."""
import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


def spectra(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 30, generator=g).cumsum(1) / 5
    y = x[:, 4] - x[:, 20] + 0.05 * torch.randn(n, generator=g)
    return TensorDataset(x, y.unsqueeze(1))


class Watch:
    def __init__(self, tolerance):
        self.tolerance, self.mean = tolerance, None

    def good_enough(self, loss):
        self.mean = loss if self.mean is None else 0.9 * self.mean + 0.1 * loss
        return self.mean < self.tolerance


def main():
    accelerator = Accelerator(cpu=True)
    set_seed(3, device_specific=True)
    model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    train = DataLoader(spectra(500, 1), batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(0))
    test = DataLoader(spectra(101, 2), batch_size=16)
    model, optimizer, train, test = accelerator.prepare(model, optimizer, train, test)
    watch, finished = Watch(0.35), False
    for epoch in range(8):
        model.train()
        for x, y in train:
            loss = nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad()
            if watch.good_enough(loss.item()):
                accelerator.set_trigger()
            if accelerator.check_trigger():
                finished = True
                break
        model.eval()
        errors = []
        for x, y in test:
            with torch.no_grad():
                errors.append(accelerator.gather_for_metrics((model(x) - y).abs()))
        errors = torch.cat(errors)
        if accelerator.is_main_process:
            print(f"epoch {epoch} MAE {errors.mean():.3f} on {len(errors)} samples", flush=True)
        if finished:
            break
    if accelerator.is_main_process:
        net = accelerator.unwrap_model(model).eval()
        print("prediction for a flat spectrum", round(net(torch.zeros(1, 30)).item(), 3), flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
