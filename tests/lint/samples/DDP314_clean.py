from contextlib import nullcontext


def step(model, batch, loss_of, more):
    context = model.no_sync() if more else nullcontext()
    with context:
        loss = loss_of(model(batch))
        loss.backward()


def through(model, batch, scaler, compute):
    with model.no_sync():
        scaler.scale(compute(model, batch)).backward()


def early(model, batch, loss_of, more):
    context = model.no_sync() if more else nullcontext()
    with context:
        loss = loss_of(model(batch))
    loss.backward()
