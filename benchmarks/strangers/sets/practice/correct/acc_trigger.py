import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


def build(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 16, generator=g)
    return TensorDataset(x, x[:, :4].argmax(1))


class Budget:
    """Ends the run once a local loss is low enough on any process."""

    def __init__(self, accelerator, level):
        self.acc, self.level = accelerator, level

    def spent(self, loss):
        if loss.item() < self.level:
            self.acc.set_trigger()
        return self.acc.check_trigger()


def train():
    acc = Accelerator(cpu=True, gradient_accumulation_steps=2)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    opt = torch.optim.AdamW(model.parameters(), lr=2e-2)
    with acc.main_process_first():
        data, held = build(240, 0), build(45, 1)
    model, opt, dl, ev = acc.prepare(model, opt, DataLoader(data, 12, shuffle=True), DataLoader(held, 8))
    budget, done, epoch = Budget(acc, 0.25), False, 0
    while not done and epoch < 8:
        model.train()
        for x, y in dl:
            with acc.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(x), y)
                acc.backward(loss)
                opt.step()
                opt.zero_grad()
            if budget.spent(loss):
                done = True
                break
        model.eval()
        hits = []
        for x, y in ev:
            with torch.no_grad():
                hits.append(acc.gather_for_metrics((model(x).argmax(1) == y).float()))
        if acc.is_main_process:
            hits = torch.cat(hits)
            print(f"epoch {epoch}: {hits.mean().item():.3f} of {len(hits)}", flush=True)
        epoch += 1
    acc.wait_for_everyone()
    if acc.is_main_process:
        torch.save(acc.unwrap_model(model).state_dict(), "/tmp/acc_trigger.pt")
    acc.end_training()


if __name__ == "__main__":
    train()
