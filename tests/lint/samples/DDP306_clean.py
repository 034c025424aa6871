from torch.nn.utils import clip_grad_norm_


def step(model, batch, optimizer, scaler):
    scaler.scale(model(batch).sum()).backward()
    scaler.unscale_(optimizer)
    clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()


def plain(model, batch, optimizer):
    model(batch).sum().backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
