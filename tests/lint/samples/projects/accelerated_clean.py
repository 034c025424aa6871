"""An accelerate script: gathers everywhere, prints and saves on the main process."""

from accelerate import Accelerator


def evaluate(accelerator, model, loader):
    losses = [accelerator.gather(model(batch).mean()) for batch in loader]
    return sum(float(loss.mean()) for loss in losses)


def main(model, optimizer, loader, held_out):
    accelerator = Accelerator()
    model, optimizer, loader, held_out = accelerator.prepare(model, optimizer, loader, held_out)
    for _ in range(3):
        for batch in loader:
            accelerator.backward(model(batch).mean())
            optimizer.step()
            optimizer.zero_grad()
        loss = evaluate(accelerator, model, held_out)
        if accelerator.is_local_main_process:
            print(loss)
    accelerator.wait_for_everyone()
    if not accelerator.is_main_process:
        return
    accelerator.save(accelerator.unwrap_model(model).state_dict(), "model.pt")
